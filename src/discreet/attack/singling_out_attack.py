"""Can somebody be singled out by what the release says?

The attacker looks for descriptions that fit exactly one record of the release ("born 1931, no schooling, four wives")
and hopes that they fit exactly one person of the original. Three searches are made: values that one released record has
alone; conjunctions found greedily, by the column that thins out the crowd most; and the shortest ways down random
trees, which end at those who stand out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.attack import success
from discreet.attack.victims import MISSING, Victims, as_numbers, victims_of
from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.cards import Figure, OfPair, measure
from discreet.core.citations import COHEN_NISSIM_2020
from discreet.core.constraints import AtLeast, ColumnNames, Public
from discreet.core.findings import Caveat, OfBenchmark
from discreet.core.parameters import checked
from discreet.core.randomness import Seed, generator
from discreet.core.results import Detail, Measure
from discreet.engine.precision import Setting
from discreet.microdata import Microdata
from discreet.numerics.counts_of_counts import MOST_COUNTED, count_law, mixture_weights, rates_of

Predicates = Literal["univariate", "multivariate"]

_LEAST = float(np.finfo(np.float64).min)
_MOST = float(np.finfo(np.float64).max)
_TRIES = 4  # released records looked at for each predicate wanted
_LONGEST = 24  # cuts down a random tree
_CROWD = 64  # released records of which the most outlying is walked down a tree


@dataclass(frozen=True)
class Found:
    """Predicates that fit one released record each: conditions ``low <= column <= high``, column -1 for none."""

    columns: Integers
    lows: Floats
    highs: Floats

    def __len__(self) -> int:
        return len(self.columns)

    def take(self, rows: Integers | Flags) -> Found:
        """Return some of them."""
        return Found(self.columns[rows], self.lows[rows], self.highs[rows])

    def matches(self, lines: Floats) -> Integers:
        """Count the records of a file that each fits, up to a few dozen."""
        from discreet.attack.predicate_kernels import count_matches

        counts = np.zeros(len(self), dtype=np.int64)
        count_matches(lines, self.columns, self.lows, self.highs, counts)
        return counts


@measure(
    room="attack",
    title="Singling out",
    headline="of the descriptions single somebody out because of the release",
    chapter="attackers",
    place=1,
    leading=True,
    work="whole-file",
    references=(success.OPINION, COHEN_NISSIM_2020, success.REFERENCE),
    figures={
        **success.RISK_FIGURES,
        "univariate_risk": Figure("Risk by one column", unit="share", better="lower"),
        "multivariate_risk": Figure("Risk by several columns", unit="share", better="lower"),
    },
    compare=OfPair(
        60,
        "risk",
        usual=False,
        judged_by_holdout=True,
        without="cross-fit",
        one_type=True,
        settings=lambda pair: {"attacks": 2_000, "up_to": 8_000},
    ),
    worst=success.worst_at(20),
    synthesis=success.WOULD_GIVE,
    benchmark=OfBenchmark(3),
)
@checked
def singling_out(
    original: Microdata,
    released: Microdata,
    *,
    holdout: Microdata | None = None,
    attacks: Annotated[int, AtLeast(1)] = 500,
    up_to: Annotated[int, AtLeast(1)] | None = None,
    predicates: Predicates | None = None,
    conditions: Annotated[int, AtLeast(2)] = 4,
    columns: ColumnNames | None = None,
    categorical: ColumnNames = (),
    precision: Annotated[Setting, Public()] = None,
    jointly: Annotated[int, AtLeast(1)] = 1,
    seed: Seed = None,
) -> Measure:
    """Can somebody be singled out by what the release says?

    A description that fits exactly one released record is held against the original: if it fits exactly one person
    there, too, that person is singled out. Descriptions that fit one person of any file of that size by chance are
    taken out by the holdout.

    Also known as: Anonymeter singling out.

    Parameters
    ----------
    original, released
        The file the release was made from, and the release.
    holdout
        People of the same population who were not used to make the release. A smaller holdout is extrapolated to the
        size of the original.
    attacks
        How many descriptions of each kind are tried; half of those of several columns are found greedily, half by
        random trees.
    up_to
        Where nothing is sure after so many, try up to this many.
    predicates
        ``"univariate"`` or ``"multivariate"`` to try one kind only.
    conditions
        The most columns that a description of several uses.
    columns
        The columns an attacker may use; all but identifiers, weights and the like unless named.
    categorical
        Columns of numbers that are codes.
    precision
        How precisely numbers are compared; as both files have them unless set.
    jointly
        Over how many attacks the lower end of what is sure (``risk_at_least``) holds together.
    seed
        Which descriptions are tried where there are more.

    Returns
    -------
    Measure
        ``value`` is the risk of the search that succeeds most: (attack - holdout) / (1 - holdout), with
        ``attack_rate``, ``control_rate``, ``baseline_rate`` (descriptions of the same form with values drawn blindly),
        ``risk_low`` and ``risk_high`` (95 %, widened for the choice among the searches), ``univariate_risk`` and
        ``multivariate_risk``.
        ``detail``: ``searches`` (each by itself) and ``predicates`` (each description: its columns, and how many people
        it fits in each file).

    How to read it
    --------------
    A risk of 0.1 means: of ten descriptions that would not single somebody out by chance, one does because the person's
    record came through. ``detail["searches"]`` tells whether single values (then smooth or round numbers), rare
    combinations or people who stand out are the trouble.

    When not to trust it
    --------------------
    It is one attacker, who knows nothing but the release; who knows more, does better. A low risk is no proof. Without
    a holdout the risk is held against blind guessing and is too high.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> people = pl.DataFrame({"pay": rng.lognormal(8, 1, 400).round(2), "age": rng.integers(18, 90, 400)})
    >>> others = pl.DataFrame({"pay": rng.lognormal(8, 1, 400).round(2), "age": rng.integers(18, 90, 400)})
    >>> found = singling_out(Microdata(people), Microdata(people), holdout=Microdata(others), seed=1)
    >>> found.value > 0.9, found.figures["control_rate"] < 0.1
    (True, True)
    """
    victims = victims_of(
        original, released, holdout, columns=columns, categorical=categorical, precision=precision
    )
    root = int(generator(seed).integers(2**62))
    lines = as_numbers(victims)
    labels = np.array([not victims.is_number(name) for name in victims.names])
    for tried in dict.fromkeys((attacks, max(up_to or attacks, attacks))):
        found = _found(lines[1], labels, tried, predicates, conditions, root)
        if not found:
            return success.harmless(
                "singling_out", _TWINS, victims, {"attacks": attacks, "columns": list(victims.names)}
            )
        held = _held(found, lines, labels, root, tried)
        trials = {name: one.trial for name, one in held.items()}
        if not success.is_open(trials, jointly):
            break
    return success.measured(
        "singling_out",
        trials,
        doing=lambda way: f"singles a person out ({_SEARCHES[way]})",
        jointly=jointly,
        figures=_by_kind(trials),
        caveats=[*victims.caveats, *_scarce(found, tried, victims)],
        parameters={
            "attacks": tried,
            "predicates": predicates or "both",
            "conditions": conditions,
            "columns": list(victims.names),
            "categorical": list(victims.categorical),
            "holdout": holdout is not None,
            "seed": seed if isinstance(seed, int) else None,
        },
        detail=Detail(
            searches=lambda: engine.like(original, success.trials_table(trials, heading="search")),
            predicates=lambda: engine.like(original, _table(found, held, victims)),
        ),
    )


def _found(  # noqa: PLR0917
    released: Floats, labels: Flags, attacks: int, predicates: Predicates | None, conditions: int, root: int
) -> dict[str, Found]:
    """Search for descriptions that fit one released record, in each of the ways that were asked for."""
    found: dict[str, Found] = {}
    if predicates != "multivariate":
        found["univariate"] = _single_values(released, labels, attacks, generator(root, "univariate"))
    if predicates != "univariate" and len(released) > 1:
        half = (attacks + 1) // 2
        found["greedy"] = _greedy(released, half, conditions, generator(root, "greedy"))
        found["tree"] = _tree(released, labels, half, conditions, generator(root, "tree"))
    return {name: one for name, one in found.items() if len(one)}


_TWINS = (
    "Nobody can be singled out by this attack: no description fits exactly one released record, because every record "
    "has a twin in these columns (k is 2 or more)."
)

_SEARCHES = {
    "univariate": "by one value",
    "greedy": "by several values found greedily",
    "tree": "by standing out in a random tree",
}


@dataclass(frozen=True)
class _Held:
    """What a search achieved, and how many people each of its predicates fits in the original and the holdout."""

    trial: success.Trial
    in_original: Integers
    in_holdout: Integers | None


def _held(
    found: Mapping[str, Found], lines: Sequence[Floats], labels: Flags, root: int, tried: int
) -> dict[str, _Held]:
    """Hold the predicates of each search against the original and the holdout, beside blind ones of their form.

    Single values are searched to the end: where there are fewer than were to be ``tried``, they are all there are.
    """
    size = lines[0].shape[1]
    held = {}
    for name, one in found.items():
        rng = generator(root, "held", name)
        inside = one.matches(lines[0])
        holdout = outside = None
        alike = 1.0
        if len(lines) > 2:
            others = lines[2]
            if others.shape[1] > size:
                others = np.ascontiguousarray(
                    others[:, np.sort(rng.choice(others.shape[1], size, replace=False))]
                )
            outside = one.matches(others)
            holdout = at_size(outside, others.shape[1], size, rng)
            if others.shape[1] == size:
                alike = success.paired(inside == 1, outside == 1)
        blind = success.Tally.of(_blindly(one, lines, labels, rng).matches(lines[0]) == 1)
        all_there_are = name == "univariate" and len(one) < tried
        reach = len(one) / size if all_there_are else 1.0
        trial = success.Trial(success.Tally.of(inside == 1), holdout, blind, alike, reach=reach)
        held[name] = _Held(trial, inside, outside)
    return held


def _by_kind(trials: Mapping[str, success.Trial]) -> dict[str, float | None]:
    several = {name: trial for name, trial in trials.items() if name != "univariate"}
    return {
        "univariate_risk": trials["univariate"].beyond().risk if "univariate" in trials else None,
        "multivariate_risk": several[success.worst_trial(several)].beyond().risk if several else None,
    }


def _scarce(found: Mapping[str, Found], attacks: int, victims: Victims) -> list[str]:
    """Say where fewer descriptions were found than asked for; a search that finds none is named."""
    wanted = {"univariate": attacks, "greedy": (attacks + 1) // 2, "tree": (attacks + 1) // 2}
    said = [
        f"Only {len(one):,} descriptions were found {_SEARCHES[name]}; {wanted[name]:,} were asked for."
        for name, one in found.items()
        if len(one) < wanted[name]
    ]
    if victims.holdout is not None and victims.holdout.height < success.FEW:
        said.append(
            Caveat(
                f"The holdout has {victims.holdout.height:,} people, fewer than {success.FEW}: what a holdout as "
                "large as the original would say is a guess. Read the interval, not the number.",
                code=success.FEW_TRIES,
            )
        )
    gone = sum(table.null_count().sum_horizontal().item() for table in victims.tables)
    return [*said, *([f"{gone:,} missing values count as a value of their own."] if gone else [])]


def _single_values(lines: Floats, labels: Flags, wanted: int, rng: np.random.Generator) -> Found:
    """Find the values that one released record has alone, and whatever lies beyond the last but one."""
    bounds = []
    for column, line in enumerate(lines):
        values, counts = np.unique(line, return_counts=True)
        alone = values[counts == 1]
        bounds.append(np.column_stack([alone, alone]))
        known, often = values[values > MISSING], counts[values > MISSING]
        if not labels[column] and len(known) > 2:
            # The largest and the smallest are alone also where the original has one who goes farther still.
            ends = [(known[-1], _MOST, often[-1]), (_LEAST, known[0], often[0])]
            bounds[-1] = np.vstack([bounds[-1], *([low, high] for low, high, many in ends if many == 1)])
    columns = np.repeat(np.arange(len(bounds)), [len(own) for own in bounds])
    lows, highs = np.concatenate(bounds).T
    found = Found(columns[:, None], lows[:, None].copy(), highs[:, None].copy())
    if len(found) <= wanted:
        return found
    return found.take(np.sort(rng.choice(len(found), wanted, replace=False)))


def _greedy(lines: Floats, wanted: int, conditions: int, rng: np.random.Generator) -> Found:
    """Describe released records by the values that thin out the crowd most, among half of the columns each."""
    from discreet.attack.predicate_kernels import greedy_predicates

    many, rows = lines.shape
    targets = rng.permutation(rows)[: _TRIES * wanted].astype(np.int64)
    width = min(many, max(conditions, (many + 1) // 2))
    offered = np.argsort(rng.random((len(targets), many)), axis=1)[:, :width].astype(np.int64)
    shared = np.stack([_sharing(line) for line in lines])
    sizes = shared[offered, targets[:, None]]
    chosen = np.full((len(targets), conditions), -1, dtype=np.int64)
    left = np.zeros(len(targets), dtype=np.int64)
    greedy_predicates(lines, targets, offered, sizes, chosen, left)
    good = np.flatnonzero(left == 1)[:wanted]
    chosen = chosen[good]
    values = np.where(chosen >= 0, lines[chosen, targets[good][:, None]], 0.0)
    return Found(chosen, values, values.copy())


def _sharing(line: Floats) -> Integers:
    """Count for each record how many have its value."""
    _, place, counts = np.unique(line, return_inverse=True, return_counts=True)
    return counts[place].astype(np.int64)


def _tree(lines: Floats, labels: Flags, wanted: int, conditions: int, rng: np.random.Generator) -> Found:
    """Describe those who are alone after the fewest cuts of a random tree over a few columns."""
    from discreet.attack.predicate_kernels import isolating_paths

    many = len(lines)
    width = min(many, conditions)
    subsets = np.argsort(rng.random((_TRIES * wanted, many)), axis=1)[:, :width]
    targets, first = np.unique(_outlying(lines, labels, subsets, rng), return_index=True)
    subsets = subsets[first]
    turns = rng.integers(width, size=(len(targets), _LONGEST))
    picks = np.take_along_axis(subsets, turns, axis=1).astype(np.int64)
    lows, highs = np.full((len(targets), many), -np.inf), np.full((len(targets), many), np.inf)
    depths = np.zeros(len(targets), dtype=np.int64)
    isolating_paths(
        lines, labels.astype(np.int64), targets, picks, rng.random(picks.shape), lows, highs, depths
    )
    reached = np.flatnonzero(depths > 0)
    good = np.sort(reached[np.argsort(depths[reached], kind="stable")][:wanted])
    lows, highs = lows[good], highs[good]
    cut = np.isfinite(lows) | np.isfinite(highs) | (lows == highs)
    order = np.argsort(~cut, axis=1, kind="stable")[:, :width]
    used = np.take_along_axis(cut, order, axis=1)
    return Found(
        np.where(used, order, -1).astype(np.int64),
        np.take_along_axis(lows, order, axis=1),
        np.take_along_axis(highs, order, axis=1),
    )


def _outlying(lines: Floats, labels: Flags, subsets: Integers, rng: np.random.Generator) -> Integers:
    """Choose for each set of columns, of some released records, the one whose values there are rarest together."""
    rows = lines.shape[1]
    rarity = np.empty(lines.shape)
    for column, line in enumerate(lines):
        place = np.argsort(np.argsort(line, kind="stable"), kind="stable")
        tail = _sharing(line) if labels[column] else np.minimum(place + 1, rows - place)
        rarity[column] = -np.log(tail / rows)
    looked_at = rng.integers(rows, size=(len(subsets), min(_CROWD, rows)))
    scores = sum(rarity[subsets[:, [at]], looked_at] for at in range(subsets.shape[1]))
    return np.asarray(looked_at[np.arange(len(subsets)), np.argmax(scores, axis=1)])


def _blindly(found: Found, lines: Sequence[Floats], labels: Flags, rng: np.random.Generator) -> Found:
    """Give each predicate values drawn blindly: any label, any number between the ends, written as precisely."""
    lows, highs = found.lows.copy(), found.highs.copy()
    for column in range(lines[0].shape[0]):
        known = np.unique(np.concatenate([line[column] for line in lines]))
        at = found.columns == column
        point = at & (found.lows == found.highs)
        numbers = known[known > MISSING]
        values = (
            rng.choice(known, size=int(point.sum()))
            if labels[column] or not len(numbers)
            else np.round(rng.uniform(numbers[0], numbers[-1], size=int(point.sum())), _decimals(numbers))
        )
        lows[point], highs[point] = values, values
        span = at & ~point
        if span.any() and len(numbers):
            cuts = np.sort(rng.uniform(numbers[0], numbers[-1], size=(2, int(span.sum()))), axis=0)
            lows[span] = np.where(found.lows[span] <= _LEAST, _LEAST, cuts[0])
            highs[span] = np.where(found.highs[span] >= _MOST, _MOST, cuts[1])
    return Found(found.columns, lows, highs)


def _decimals(numbers: Floats) -> int:
    """Find with how many decimals numbers are written, up to six."""
    return next((places for places in range(6) if np.array_equal(np.round(numbers, places), numbers)), 6)


def _table(found: Mapping[str, Found], held: Mapping[str, _Held], victims: Victims) -> pl.DataFrame:
    """Name the columns of each description and how many people it fits; its values stay in the house."""
    return pl.concat(
        pl.DataFrame(
            {
                "search": [name] * len(one),
                "columns": [
                    ", ".join(victims.names[column] for column in line if column >= 0)
                    for line in one.columns.tolist()
                ],
                "people_in_original": held[name].in_original,
                "people_in_control": held[name].in_holdout
                if held[name].in_holdout is not None
                else pl.Series([None] * len(one), dtype=pl.Int64),
                "singled_out": held[name].in_original == 1,
            }
        )
        for name, one in found.items()
    )


# How often would predicates single somebody out in a holdout as large as the original?
#
# Whether a description fits exactly one person depends on how many people there are. Where the holdout is larger, some
# of its people are drawn. Where it is smaller, nobody can be added: the counts that were seen are taken as draws of a
# Poisson law whose rate differs from predicate to predicate, the law of the rates is estimated without assuming its
# form (the maximum-likelihood mixture of Kiefer and Wolfowitz, by EM), and the chance of exactly one match is computed
# at the size of the original. The estimate is worth fewer tries than were made; a bootstrap says how many.


_RESAMPLES = 100


def at_size(counts: Integers, size: int, wanted: int, rng: np.random.Generator) -> success.Tally:
    """Estimate how many predicates fit exactly one person among ``wanted``, from their matches among ``size``.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> rates = rng.exponential(1.0, 2000)
    >>> seen = at_size(rng.poisson(rates / 2), 500, 1000, rng)
    >>> bool(abs(seen.rate - np.mean(rates * np.exp(-rates))) < 0.03)
    True
    """
    if size >= wanted:
        return success.Tally(float(np.count_nonzero(counts == 1)), float(len(counts)))
    times = wanted / size
    seen = np.bincount(np.minimum(counts, MOST_COUNTED), minlength=MOST_COUNTED + 1).astype(np.float64)
    draws = np.vstack([seen, rng.multinomial(len(counts), seen / seen.sum(), size=_RESAMPLES)])
    rates = np.concatenate([[0.0], rates_of(0.02)])
    chances = mixture_weights(draws, count_law(rates)) @ (times * rates * np.exp(-times * rates))
    rate, spread = float(np.clip(chances[0], 0, 1)), float(chances[1:].var())
    tries = float(len(counts))
    if spread > 0 and 0 < rate < 1:
        tries = float(np.clip(rate * (1 - rate) / spread, 1.0, tries))
    return success.Tally(rate * tries, tries)
