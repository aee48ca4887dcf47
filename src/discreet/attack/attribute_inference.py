"""Can something be learned about somebody from the release, beyond what is true of people in general?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.attack import success
from discreet.attack.victims import Victims, drawn, label_codes, victims_of
from discreet.core.arrays import Array, Flags, Floats, Integers
from discreet.core.cards import OfPair, TwoFiles, measure
from discreet.core.constraints import AtLeast, ColumnName, ColumnNames, Entries, Public, Share
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.core.findings import OfBenchmark
from discreet.core.parameters import checked
from discreet.core.progress import track
from discreet.core.randomness import Seed, generator
from discreet.core.results import Detail, Measure
from discreet.engine.precision import Setting
from discreet.microdata import Microdata
from discreet.numerics.distance.search import nearest
from discreet.numerics.distance.space import MixedSpace, Points, as_float
from discreet.numerics.trees.coding import Feature, encode
from discreet.numerics.trees.forest import grow_forest
from discreet.pairs.side_by_side import names_checked


def _settings(pair: TwoFiles) -> Mapping[str, Any]:
    others = [name for name in pair.columns if name not in pair.sensitive]
    return {
        "secret": [*pair.sensitive, *others],
        "known": list(pair.columns),
        "attacks": 2_000,
        "up_to": 12_000,
    }


@measure(
    room="attack",
    title="Inference",
    headline="of the secrets are guessed because of the release",
    chapter="attackers",
    place=3,
    leading=True,
    work="whole-file",
    references=(success.OPINION, success.REFERENCE),
    figures=success.RISK_FIGURES,
    compare=OfPair(
        62,
        "risk",
        usual=False,
        judged_by_holdout=True,
        without="cross-fit",
        one_type=True,
        settings=_settings,
    ),
    worst=success.worst_at(22),
    synthesis=success.WOULD_GIVE,
    benchmark=OfBenchmark(5),
)
@checked
def inference(
    original: Microdata,
    released: Microdata,
    *,
    secret: ColumnName | ColumnNames | None = None,
    known: ColumnNames | None = None,
    holdout: Microdata | None = None,
    attacks: Annotated[int, AtLeast(1)] = 1_000,
    up_to: Annotated[int, AtLeast(1)] | None = None,
    method: Method | Annotated[Sequence[Method], Entries()] | None = None,
    tolerance: Annotated[float, Share(below=True)] = 0.05,
    categorical: ColumnNames = (),
    precision: Annotated[Setting, Public()] = None,
    jointly: Annotated[int, AtLeast(1)] = 1,
    progress: bool = False,
    seed: Seed = None,
) -> Measure:
    """Can something be learned about somebody from the release, beyond what is true of people in general?

    The attacker knows some columns of a person and guesses another from the release: by the nearest released record, by
    a forest and by boosted trees. What is guessed as often about people who are not in the file is knowledge about
    people, and no harm that a record does to its owner.

    Also known as: Anonymeter inference; attribute inference attack.

    Parameters
    ----------
    original, released
        The file the release was made from, and the release.
    secret
        The column, or columns, to be guessed; the sensitive ones of the original unless named, or else all.
    known
        What the attacker knows; all columns but the secret unless named.
    holdout
        People of the same population who were not used to make the release.
    attacks
        How many people are attacked, in the file and in the holdout.
    up_to
        Where nothing is sure after so many, attack up to this many for the secrets of which little is known yet.
    method
        ``"nearest"``, ``"forest"``, ``"boosted"``, or several; all three unless named.
    tolerance
        How far the guess of a number may be off, in either direction, as a share of the true number; for dates, as a
        share of the days between the first and the last.
    categorical
        Columns of numbers that are codes.
    precision
        How precisely numbers are compared; as both files have them unless set.
    jointly
        Over how many attacks the lower end of what is sure (``risk_at_least``) holds together.
    progress
        Show a progress bar on a terminal.
    seed
        Which people are attacked, and the draws of the forest.

    Returns
    -------
    Measure
        ``value`` is the risk of the secret and the method that succeed most surely, (attack - holdout) / (1 - holdout),
        with ``attack_rate``, ``control_rate``, ``baseline_rate`` (the one answer that fits most: 0.5 for a fair coin),
        ``risk_low`` and ``risk_high`` (95 %, widened for the choice), ``risk_at_least`` and ``risk_at_most`` (what is
        sure of the surest way, and what cannot be ruled out of any). What the blind guess explains of the difference to
        the holdout is chance and taken out. ``detail``: ``secrets`` (each by each method) and ``records`` (who was
        attacked by the worst, and with what success).

    How to read it
    --------------
    A risk of 0.2 means: of five people whose secret nobody could have guessed, one lost it because they were in the
    file. Look at ``detail["secrets"]``: where nearest neighbors succeed, records came through almost as they were.

    When not to trust it
    --------------------
    A holdout from another population, or one that was used to tune the generator, moves the answer either way. Secrets
    that follow from a known column (a code and its name) are guessed about everybody, and the risk is undefined.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> def people():
    ...     known = {name: rng.normal(size=400) for name in ("x", "y")}
    ...     return Microdata(pl.DataFrame({**known, "coin": rng.integers(0, 2, 400)}))
    >>> real, others = people(), people()
    >>> found = inference(real, real, secret="coin", categorical=["coin"], method="nearest", holdout=others, seed=1)
    >>> found.figures["attack_rate"], round(found.figures["baseline_rate"], 1)
    (1.0, 0.5)
    """
    methods = success.chosen_ways(method, METHODS)
    victims, secrets, knowns = _plan(original, released, holdout, secret, known, categorical, precision)
    root = int(generator(seed).integers(2**62))
    trials: dict[str, success.Trial] = {}
    rows: dict[str, pl.DataFrame] = {}
    said: list[str] = []
    wanted: dict[str, Sequence[Method]] = dict.fromkeys(secrets, methods)
    for most in dict.fromkeys((attacks, max(up_to or attacks, attacks))):
        scene = _Scene.of(victims, tuple(wanted), knowns, most, root)
        for name, ways in track(
            wanted.items(), description="Guessing", progress=progress and len(secrets) > 1
        ):
            try:
                told, hits = scene.attacked(name, knowns[name], methods=ways, tolerance=tolerance, root=root)
            except (InputError, ColumnError) as error:
                if len(secrets) == 1:
                    raise
                said.append(str(error))
                continue
            trials |= {f"{name} by {one}": trial for one, trial in told.items()}
            rows |= {f"{name} by {one}": table for one, table in hits.items()}
            said += not_attacked(scene.coded[name][0], name)
        if not trials:
            return success.harmless("inference", " ".join(said), victims, {"secret": list(secrets)})
        settled = {way for way in trials if trials[way].is_no_secret}
        settled = {way for way in trials if any(_secret(way) == _secret(one) for one in settled)}
        wanted = _unsure(trials, settled, jointly)
        if not wanted:
            break
    return success.measured(
        "inference",
        trials,
        doing=_in_words,
        jointly=jointly,
        settled=settled,
        caveats=[*victims.caveats, *dict.fromkeys(said)],
        parameters={
            "secret": list(secrets),
            "known": list(known) if known is not None else "all others",
            "attacks": attacks,
            **({"up_to": up_to} if up_to else {}),
            "method": list(methods),
            "tolerance": tolerance,
            "categorical": list(categorical),
            "holdout": holdout is not None,
            "seed": seed if isinstance(seed, int) else None,
        },
        detail=Detail(
            secrets=lambda: engine.like(original, _side_by_side(trials)),
            records=lambda: engine.like(original, rows[success.worst_trial(trials)]),
        ),
    )


_WAYS = {"nearest": "by the nearest record", "forest": "by a forest", "boosted": "by boosted trees"}


def _in_words(way: str) -> str:
    return f"guesses a person's '{_secret(way)}' ({_WAYS[way.rpartition(' by ')[2]]})"


def _secret(way: str) -> str:
    return way.rpartition(" by ")[0]


def _unsure(
    trials: Mapping[str, success.Trial], settled: Collection[str], jointly: int
) -> dict[str, Sequence[Method]]:
    """Name the secrets and methods that leave a risk open, where no other is sure to be one."""
    many = len(trials) * jointly
    sure = {name: one.beyond(many).low or 0.0 for name, one in trials.items()}
    if max(sure.values()) > success.SURELY:
        return {}
    left = [
        name
        for name, one in trials.items()
        if name not in settled and one.at_most(len(trials)) > success.OPEN
    ]
    # Where one way all but shows a risk, that nothing is found by the others clears nothing.
    left = [name for name in left if sure[name] > success.OPEN / 2] or left
    return {
        secret: tuple(method for method in METHODS if f"{secret} by {method}" in left)
        for secret in dict.fromkeys(map(_secret, left))
    }


def _plan(  # noqa: PLR0917
    original: Microdata,
    released: Microdata,
    holdout: Microdata | None,
    secret: str | Sequence[str] | None,
    known: Sequence[str] | None,
    categorical: Sequence[str],
    precision: Setting,
) -> tuple[Victims, tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Settle which columns are guessed from which, and bring the files together."""
    named = None if secret is None else names_checked(original, secret, "secret")
    if named is not None and not named:
        raise ParameterError("secret is empty: name the columns to be guessed, or leave it out.")
    given = None if known is None else names_checked(original, known, "known")
    wanted = (
        None if named is None or given is None else [*named, *(name for name in given if name not in named)]
    )
    victims = victims_of(
        original, released, holdout, columns=wanted, categorical=categorical, precision=precision
    )
    if named is not None:
        for name in named:
            if name not in victims.names:
                raise ColumnError(
                    f"Column '{name}' is named as secret, but another file lacks it, or it identifies people by itself."
                )
    sensitive = tuple(name for name in original.roles.sensitive if name in victims.names)
    secrets = named or sensitive or victims.names
    knowns = {
        name: tuple(other for other in (given or victims.names) if other != name and other in victims.names)
        for name in secrets
    }
    for name, columns in knowns.items():
        if not columns:
            raise ParameterError(f"Nothing is known from which '{name}' could be guessed. Name known=[…].")
    return victims, secrets, knowns


@dataclass(frozen=True)
class _Scene:
    """What all secrets share: who is attacked, and what is known of them and of the released records."""

    victims: Victims
    coded: Mapping[str, Sequence[Secret]]
    orders: Sequence[Integers]
    attacks: int
    clues: Clues
    chosen: Sequence[Integers]

    @classmethod
    def of(
        cls,
        victims: Victims,
        secrets: Sequence[str],
        knowns: Mapping[str, Sequence[str]],
        attacks: int,
        root: int,
    ) -> _Scene:
        """Choose whom to attack: the same people for every secret, others only for those whose secret is missing."""
        tables = [victims.original, *([] if victims.holdout is None else [victims.holdout])]
        coded = {
            name: secrets_of(
                [table[name] for table in victims.tables], categorical=name in victims.categorical
            )
            for name in secrets
        }
        streams = ("original", "control")[: len(tables)]
        orders = [
            generator(root, stream).permutation(table.height)
            for table, stream in zip(tables, streams, strict=True)
        ]
        chosen = [
            np.unique(
                np.concatenate([_first_known(own[at], order, attacks) for own in coded.values()])
            ).astype(np.int64)
            for order, at in zip(orders, (0, 2), strict=False)
        ]
        names = [name for name in victims.names if any(name in known for known in knowns.values())]
        people = pl.concat([table[rows].select(names) for table, rows in zip(tables, chosen, strict=True)])
        clues = Clues.of(victims.released.select(names), people, victims.categorical)
        return cls(victims, coded, orders, attacks, clues, chosen)

    def attacked(
        self, name: str, known: Sequence[str], *, methods: Sequence[Method], tolerance: float, root: int
    ) -> tuple[dict[Method, success.Trial], dict[Method, pl.DataFrame]]:
        """Guess one secret by each method, about people in the file and in the holdout alike."""
        coded = self.coded[name]
        released = coded[1]
        if np.isnan(released.values).all():
            raise InputError(
                f"Column '{name}' is missing in every released record: nothing can be learned of it."
            )
        people = [
            np.sort(_first_known(coded[at], order, self.attacks))
            for order, at in zip(self.orders, (0, 2), strict=False)
        ]
        if not len(people[0]):
            raise InputError(
                f"Column '{name}' is missing for everybody in the original: no guess could be checked."
            )
        # Strangers of whom nobody knows it say nothing about it; then it is held against a blind guess.
        people = [rows for rows in people if len(rows)]
        truth = np.concatenate([coded[at].values[rows] for at, rows in zip((0, 2), people, strict=False)])
        before = np.cumsum([0, *map(len, self.chosen)])
        asked = np.concatenate(
            [
                start + np.searchsorted(held, rows)
                for start, held, rows in zip(before[:-1], self.chosen, people, strict=False)
            ]
        )
        clues = self.clues.part(known, asked)
        reach = reach_of(self.victims, name, coded[0])
        cut = len(people[0])
        answer = np.full(len(truth), blind_guess(released, tolerance, reach))
        blind = is_right(answer, truth, released, tolerance, reach)
        trials: dict[Method, success.Trial] = {}
        rows: dict[Method, pl.DataFrame] = {}
        for method in methods:
            guess = guesses(method, clues, released, generator(root, name, method))
            right: Flags = is_right(guess, truth, released, tolerance, reach)
            others = (right[cut:], blind[cut:]) if len(people) > 1 else (None, None)
            trials[method] = success.Trial.of_guesses(right[:cut], others[0], blind[:cut], others[1])
            rows[method] = pl.DataFrame({"record": people[0], "guessed": right[:cut]})
        return trials, rows


def _first_known(secret: Secret, order: Integers, wanted: int) -> Integers:
    """Take the first people of an order whose secret is not missing."""
    return order[~np.isnan(secret.values[order])][:wanted].astype(np.int64)


def not_attacked(secret: Secret, name: str) -> list[str]:
    """Say how many people of the original have no secret that could be guessed."""
    gone = int(np.isnan(secret.values).sum())
    said = f"'{name}' is missing for {gone:,} people of the original; they were not attacked."
    return [said] if gone else []


def reach_of(victims: Victims, name: str, secret: Secret) -> float:
    """Give the days between the first and the last date of a column of dates; 0 for numbers and labels."""
    if not victims.original.schema[name].is_temporal() or not secret.is_number:
        return 0.0
    return float(np.nanmax(secret.values) - np.nanmin(secret.values))


def _side_by_side(trials: Mapping[str, success.Trial]) -> pl.DataFrame:
    table = success.trials_table(trials, heading="secret")
    parts = [name.rpartition(" by ") for name in trials]
    return table.with_columns(
        pl.Series("secret", [secret for secret, _, _ in parts]),
    ).insert_column(1, pl.Series("method", [method for _, _, method in parts]))


# How does an attacker guess a column from the others? Nearest neighbor, forest and boosted trees, on a release alone.
#
# Every way of guessing learns from the released records and answers for the people it is asked about. Labels are
# guessed as codes; a number is guessed so that it is often near, by medians and not by means.


Method = Literal["nearest", "forest", "boosted"]
METHODS: tuple[Method, ...] = ("nearest", "forest", "boosted")

_TREES = 6
_BINS = 256
_ROUNDS = 12  # of boosting
_LEARNED = 6_000
"""Released records that trees learn from, at most: who was copied is found by the nearest record, among all of them."""
_CLASSES = 12
"""Classes that boosting tells apart: it grows a tree for each in every round, so rare ones are never guessed."""


@dataclass(frozen=True)
class Secret:
    """A column to be guessed, as numbers: labels by their place among ``levels``; NaN where it is missing."""

    values: Floats
    levels: int

    @property
    def is_number(self) -> bool:
        """Whether it is guessed by tolerance."""
        return self.levels == 0


def secrets_of(columns: Sequence[pl.Series], *, categorical: bool) -> list[Secret]:
    """Write the same column of several files as numbers or as codes of labels that mean the same in all."""
    dtype = columns[0].dtype
    if (dtype.is_numeric() or dtype.is_temporal()) and not categorical:
        return [Secret(as_float(column), 0) for column in columns]
    codes, levels = label_codes(columns)
    return [Secret(values, levels) for values in codes]


@dataclass(frozen=True)
class Clues:
    """What is known about the released records and about the people to be guessed, placed in one space."""

    space: MixedSpace
    released: Points
    people: Points
    coding: tuple[list[Feature], Array, Array] | None = None

    @classmethod
    def of(cls, released: pl.DataFrame, people: pl.DataFrame, categorical: Sequence[str]) -> Clues:
        """Place both in the space of the release, which is what an attacker has."""
        codes = [name for name in categorical if name in released.columns]
        space = MixedSpace.fit(released, people, categorical=codes)
        _check_varies(space)
        return cls(space, space.place(released), space.place(people))

    def part(self, known: Sequence[str], people: Integers) -> Clues:
        """Know only some of the columns, and of some of the people; what was coded for trees is not coded again."""
        if self.coding is None:
            object.__setattr__(self, "coding", self.coded())
        assert self.coding is not None
        features, released, asked = self.coding
        space, names = self.space, set(known)
        numbers = [at for at, name in enumerate(space.numeric) if name in names]
        codes = [at for at, name in enumerate(space.categorical) if name in names]
        places = [*numbers, *(len(space.numeric) + at for at in codes)]
        fewer = replace(
            space,
            numeric=tuple(space.numeric[at] for at in numbers),
            categorical=tuple(space.categorical[at] for at in codes),
            origins=space.origins[numbers],
            units=space.units[numbers],
            number_weights=space.number_weights[numbers],
            category_weights=space.category_weights[codes],
            levels=tuple(space.levels[at] for at in codes),
        )
        _check_varies(fewer)

        def taken(points: Points, rows: Integers | slice) -> Points:
            return Points(
                np.ascontiguousarray(points.numbers[rows][:, numbers]),
                np.ascontiguousarray(points.codes[rows][:, codes]),
            )

        return Clues(
            fewer,
            taken(self.released, slice(None)),
            taken(self.people, people),
            (
                [features[at] for at in places],
                np.asfortranarray(released[:, places]),
                np.asfortranarray(asked[people][:, places]),
            ),
        )

    def coded(self) -> tuple[list[Feature], Array, Array]:
        """Code released records and people as trees see them; missing values are values of their own."""
        if self.coding is not None:
            return self.coding
        numbers, codes = self.released.numbers, self.released.codes
        features = [Feature.numeric(column, max_bins=_BINS) for column in numbers.T]
        features += [Feature.category(len(levels) + 1) for levels in self.space.levels]
        return (
            features,
            encode(features, [*numbers.T, *(codes.T + 1)]),
            encode(features, [*self.people.numbers.T, *(self.people.codes.T + 1)]),
        )


def _check_varies(space: MixedSpace) -> None:
    if not space.columns:
        raise ColumnError(
            "Nothing varies in the release in the known columns, so nothing can be inferred from them. Name others "
            "with known=[…]."
        )


def guesses(method: Method, clues: Clues, secret: Secret, rng: np.random.Generator) -> Floats:
    """Guess the secret of everybody asked about, from released records whose secret is not missing."""
    known = np.flatnonzero(~np.isnan(secret.values)).astype(np.int64)
    learned = known[drawn(len(known), _LEARNED, rng)]
    ways: dict[Method, Callable[[], Floats]] = {
        "nearest": lambda: _of_nearest(clues, secret, known),
        "forest": lambda: _of_forest(clues, secret, learned, rng),
        "boosted": lambda: _of_boosting(clues, secret, learned, rng),
    }
    return ways[method]()


def _of_nearest(clues: Clues, secret: Secret, known: Integers) -> Floats:
    released = clues.released if len(known) == len(clues.released) else clues.released.take(known)
    found = nearest(clues.space, clues.people, released, description="Guessing")
    return secret.values[known[found.index[:, 0]]]


def _of_forest(clues: Clues, secret: Secret, known: Integers, rng: np.random.Generator) -> Floats:
    features, codes, asked = clues.coded()
    values = secret.values[known]
    outcome = values if secret.is_number else values.astype(np.int32)
    forest = grow_forest(
        np.asfortranarray(codes[known]),
        features,
        outcome,
        rng=rng,
        n_classes=secret.levels,
        n_trees=_TREES,
        min_leaf=2,
        threads=2,
    )
    answers = []
    for tree in forest.trees:
        leaves = tree.leaves(asked, rng)
        if secret.is_number:
            leaf = np.repeat(np.arange(tree.n_leaves), np.diff(tree.starts))
            held = pl.DataFrame({"leaf": leaf, "value": values[tree.rows]})
            medians = held.group_by("leaf").agg(pl.col("value").median()).sort("leaf")
            by_leaf = np.full(tree.n_leaves, np.nan)
            by_leaf[medians["leaf"].to_numpy()] = medians["value"].to_numpy()
            answers.append(by_leaf[leaves])
        else:
            answers.append(np.nan_to_num(tree.leaf_shares)[leaves])
    if secret.is_number:
        return np.asarray(np.nanmedian(np.stack(answers), axis=0))
    return np.asarray(np.sum(answers, axis=0).argmax(axis=1).astype(np.float64))


def _of_boosting(clues: Clues, secret: Secret, known: Integers, rng: np.random.Generator) -> Floats:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    learned = np.column_stack([clues.released.numbers, clues.released.codes])[known]
    asked = np.column_stack([clues.people.numbers, clues.people.codes])
    values = secret.values[known]
    # Columns of which the records that are learned from know nothing cannot be binned.
    told = ~np.isnan(learned).all(axis=0)
    if not told.any():
        return np.full(
            len(asked), np.median(values) if secret.is_number else np.bincount(values.astype(int)).argmax()
        )
    learned, asked = learned[:, told], asked[:, told]
    settings = {"max_iter": _ROUNDS, "early_stopping": False, "random_state": int(rng.integers(2**31))}
    # One thread: sums over several differ in their last bits from machine to machine.
    with threadpool_limits(1):
        if secret.is_number:
            model = HistGradientBoostingRegressor(loss="absolute_error", **settings)
            return np.asarray(model.fit(learned, values).predict(asked), dtype=np.float64)
        often, counts = np.unique(values, return_counts=True)
        often = often[np.argsort(-counts, kind="stable")][:_CLASSES]
        if len(often) == 1:
            return np.full(len(asked), often[0])
        taken = np.isin(values, often)
        model = HistGradientBoostingClassifier(**settings)
        return np.asarray(model.fit(learned[taken], values[taken]).predict(asked), dtype=np.float64)


def is_right(guess: Floats, truth: Floats, secret: Secret, tolerance: float, reach: float) -> Flags:
    """Say which guesses are right: labels equal, numbers within a share of the true one, dates within a share of all.

    The difference counts in both directions.
    """
    if not secret.is_number:
        return np.asarray(guess == truth)
    allowed = np.abs(truth) * tolerance if reach == 0 else np.full(len(truth), reach * tolerance)
    return np.asarray(np.abs(guess - truth) <= allowed + 1e-9 * np.abs(truth))


def blind_guess(secret: Secret, tolerance: float, reach: float) -> float:
    """Find the one answer that is right most often in the release: what to say of anybody without looking.

    Examples
    --------
    >>> blind_guess(Secret(np.array([0.0, 1.0, 1.0]), 2), 0.05, 0.0)
    1.0
    >>> 100 <= blind_guess(Secret(np.array([1.0, 50.0, 100.0, 101.0, 103.0]), 0), 0.05, 0.0) <= 105
    True
    """
    values = np.sort(secret.values[~np.isnan(secret.values)])
    if not secret.is_number:
        return float(np.bincount(values.astype(np.int64)).argmax())
    # A guess is right for the values whose tolerance reaches it; the best guess lies at the end of such a reach.
    spread = np.abs(values) * tolerance if reach == 0 else np.full(len(values), reach * tolerance)
    lows, highs = np.sort(values - spread), np.sort(values + spread)
    covered = np.searchsorted(lows, highs, side="right") - np.arange(len(highs))
    return float(highs[int(covered.argmax())])
