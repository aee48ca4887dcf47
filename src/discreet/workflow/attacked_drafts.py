"""Which draft of a synthesis keeps attackers out? Drafts are attacked and closed, and judged by other people then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any

import polars as pl

from discreet.attack.attack_battery import BY_NUMBERS, BY_WHOLE_RECORDS, Gains, attacked, labels_among
from discreet.core.progress import track
from discreet.microdata import Microdata
from discreet.synth import Fitted, Sequential
from discreet.synth.methods.observed_values import Sample
from discreet.synth.methods.tree_donors import Cart
from discreet.synth.sequential.sequential import Smoothing
from discreet.utility.tabular import tabular

FEWEST = 100
_TRIES = 12
_LOOKS = 8
_LOOKING = 10_000  # where the seeds of looks begin, far from those of judgments


@dataclass(frozen=True, eq=False)
class Scene:
    """Who is learned from, who is attacked beside them, and with which random numbers."""

    used: Microdata
    first: Microdata
    second: Microdata
    secrets: tuple[str, ...]
    attacks: int
    rows: int | None
    root: int

    def draft(self, closing: Closing, chosen: Sequential, look: int) -> Try:
        """Fit, draw, and let a few attackers look for what is open.

        Every look asks other people of the file: some who happen to be easier to guess than those beside them would
        otherwise send every draft to the next step.
        """
        synthesizer = closing.applied(chosen)
        fitted = synthesizer.fit(self.used, seed=self.root)
        file: Any = fitted.sample(self.rows, seed=self.root)
        gains = attacked(
            self.used,
            file,
            self.first,
            secrets=self.secrets,
            attacks=max(self.attacks // 4, FEWEST),
            seed=self.root + _LOOKING + look,
        )
        return Try(closing, synthesizer, fitted, file, gains, distance_of(self.used, file))

    def judged(self, draft: Try) -> Try:
        """Draw anew and let all attackers try it, beside people they have not been held against before."""
        fresh = self.root + 1
        file: Any = draft.fitted.sample(self.rows, seed=fresh)
        gains = self.gains_of(file, fresh)
        return replace(draft, file=file, gains=gains, distance=distance_of(self.used, file), judged=True)

    def gains_of(self, file: Microdata, seed: int) -> Gains:
        """Let all attackers try a file, beside the people by whom no step was chosen."""
        return attacked(
            self.used,
            file,
            self.second,
            secrets=self.secrets,
            attacks=self.attacks,
            seed=seed,
            all_kinds=True,
        )


@dataclass(frozen=True, eq=False)
class Try:
    """A draft: how far it was closed, what was fitted and drawn, what attackers gained, and what it costs."""

    closing: Closing
    synthesizer: Sequential
    fitted: Fitted
    file: Microdata
    gains: Gains
    distance: float
    judged: bool = False


def distance_of(used: Microdata, file: Microdata) -> float:
    """Say how many records lie in other cells of the tables of two columns, on average."""
    price: Any = tabular(used, file).figures["mean_SPECKS"]
    return float(price or 0.0)


def closed(scene: Scene, chosen: Sequential, limit: float, *, progress: bool) -> tuple[list[Try], Try]:
    """Take step after step until the limit holds, or no step or look is left."""
    closing: Closing | None = Closing.none_yet(scene.used, chosen)
    tries: list[Try] = []
    for look in track(range(_TRIES), description="Closing to attackers", progress=progress):
        if closing is None:
            break
        draft = scene.draft(closing, chosen, look)
        tries.append(draft)
        # A gain that may as well be none, among few attacks, is left to the judgment, which has more of them.
        through = worth_a_step(draft.gains.past(limit).filter(pl.col("risk_low") > 0), draft)
        if not through.height:
            verdict = scene.judged(draft)
            tries[-1] = verdict
            through = worth_a_step(_open(verdict.gains, limit), verdict)
            if not through.height or sum(one.judged for one in tries) >= _LOOKS:
                break
        closing = closing.further(through)
    judged = [one for one in tries if one.judged]
    if not judged:
        least = min(range(len(tries)), key=lambda at: tries[at].gains.worst)
        tries[least] = scene.judged(tries[least])
        judged = [tries[least]]
    return tries, chosen_of(judged, limit)


def chosen_of(judged: Sequence[Try], limit: float) -> Try:
    """Choose what is shown to keep the limit, or else the cheapest that was found to, or else the least risk.

    Where the attacked people are too few to show a limit, ever dearer drafts only try for luck.
    """

    def rank(draft: Try) -> tuple[bool, bool, bool, float]:
        found = draft.gains.worst <= limit
        left = _open(draft.gains, limit).height > 0
        return not holds(draft.gains, limit), not found, left, draft.distance if found else draft.gains.top

    return min(judged, key=rank)


def _open(gains: Gains, limit: float) -> pl.DataFrame:
    """Give the ways that a step could still close.

    Where so few people were attacked that even no gain at all would hardly be shown, another step would show nothing
    either, and only a gain counts that was found for certain: one that may as well be none would send the synthesis
    from step to step by luck.
    """
    unsure = pl.col("way").is_in(gains.unsure(limit)["way"].implode())
    found = (pl.col("risk") > limit) & (pl.col("risk_low") > 0)
    return gains.past(limit, "risk_high").filter(~unsure | found)


def worth_a_step(through: pl.DataFrame, draft: Try) -> pl.DataFrame:
    """Leave out guessed columns whose own leaves are as wide as they get, unless they are guessed beyond any luck.

    Such a column costs all others their leaves, and one of several ways is above zero by luck in more than one of 20
    cases: here its interval must be so with all ways together.
    """
    ways = max(draft.gains.table.height, 1)
    beyond = NormalDist().inv_cdf(1 - 0.025 / ways) / NormalDist().inv_cdf(0.975)
    surely = pl.col("risk") - (pl.col("risk") - pl.col("risk_low")) * beyond > 0
    return through.filter(~pl.col("way").is_in(list(draft.closing.widest)) | surely)


def holds(gains: Gains, limit: float) -> bool:
    """Whether the upper ends of all intervals keep the limit."""
    return gains.table.height > 0 and gains.top <= limit


def frontier_of(tries: Sequence[Try], best: Try, limit: float) -> pl.DataFrame:
    """Put the tries side by side."""
    return pl.DataFrame(
        {
            "step": [" ".join(one.closing.said) or "as given" for one in tries],
            "risk": [one.gains.worst for one in tries],
            "risk_high": [one.gains.top for one in tries],
            "worst_attack": [foremost(one.gains) for one in tries],
            "distance": [one.distance for one in tries],
            "judged": [one.judged for one in tries],
            "keeps": [one.judged and holds(one.gains, limit) for one in tries],
            "chosen": [one is best for one in tries],
        },
        schema_overrides={"worst_attack": pl.String},
    )


def foremost(gains: Gains) -> str | None:
    """Name the way of attacking with the highest upper end."""
    table = gains.table.sort("risk_high", descending=True)
    return table["attack"][0] if table.height else None


# Which step closes a synthesis to the attackers that got through, and costs least?
#
# A way of attacking names the steps that help against it, the cheapest first: numbers that few have are drawn between
# those of others, labels that few share come from larger groups, and columns are drawn from larger leaves, the guessed
# ones before all others; last of all numbers must be shared, too. A label that ten people must share asks for a leaf in
# which ten can: out of leaves of five every one would be handed up, which costs more in the tables of two columns than
# larger leaves do (Adult, labels shared by 10: 0.016 out of leaves of 20 and 0.013 out of leaves of 60).


BLURS: tuple[Smoothing, ...] = ("between", "adaptive")
SHARED = (10, 20, 40)
LEAVES = (20, 60, 120, 200, 500)
_ROOM = 6  # times as many records in a leaf as must share a label


@dataclass(frozen=True)
class Closing:
    """How far a synthesis was closed.

    Attributes
    ----------
    numbers, methods
        The columns of numbers that are drawn from donors, and how the columns are drawn that trees draw, or nothing but
        their own values.
    blur, shared_by, numbers_shared_by
        How numbers are blurred, and how many must share a label or a number; None and 1 for as given.
    leaves
        ``{column: fewest records of a leaf}`` where it is more than was given.
    """

    numbers: tuple[str, ...]
    methods: Mapping[str, Cart | Sample]
    blur: Smoothing | None = None
    shared_by: int = 1
    numbers_shared_by: int = 1
    leaves: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def none_yet(cls, data: Microdata, chosen: Sequential) -> Closing:
        """Look which columns the steps can do something about."""
        steps = {step.name: step.method for step in chosen.plan(data).steps if step.name in data.schema}
        # Between two codes there is nothing: what few have of these is left to the number who must share a value.
        codes = labels_among(data)
        numbers = tuple(
            name
            for name, way in steps.items()
            if data.schema[name].is_numeric() and way.gives_observed_values and name not in codes
        )
        return cls(numbers, {name: way for name, way in steps.items() if isinstance(way, Cart | Sample)})

    @property
    def grown(self) -> dict[str, int]:
        """The columns that trees draw, with the fewest records of their leaves to begin with."""
        return {name: way.min_leaf for name, way in self.methods.items() if isinstance(way, Cart)}

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns of the others: what is drawn there is a name, and nothing lies between two of them."""
        return tuple(name for name in self.methods if name not in self.numbers)

    @property
    def widest(self) -> tuple[str, ...]:
        """The columns whose leaves are as wide as they get: only all other columns can do more about these."""
        there = {**self.grown, **self.leaves}
        return tuple(name for name, leaf in there.items() if leaf >= LEAVES[-1])

    def further(self, through: pl.DataFrame) -> Closing | None:
        """Take the next step against every way that got through; None where none is left."""
        closed = self
        for way in through["way"].unique(maintain_order=True):
            closed = closed._against(way, self)
        return closed if closed != self else self._wider(self.grown)

    def _against(self, way: str, before: Closing) -> Closing:
        if way in before.grown:
            wider = before._wider([way])
            return self if wider is None else self._grown_to(wider.leaves)
        if way in BY_NUMBERS and before.numbers and before.blur != BLURS[-1]:
            return replace(self, blur=_after(BLURS, before.blur))
        if way not in BY_WHOLE_RECORDS and before.labels and before.shared_by == 1:
            return self._sharing(SHARED[0])
        if before.numbers and before.blur is None:
            return replace(self, blur=BLURS[0])
        wider = before._wider(before.grown)
        if wider is None:
            more = _after(SHARED, before.numbers_shared_by)
            return replace(self, shared_by=more, numbers_shared_by=more, blur=BLURS[-1])
        return self._grown_to(wider.leaves)

    def _sharing(self, people: int) -> Closing:
        """Let so many share a label, in leaves that have room for them."""
        room = next(leaf for leaf in LEAVES if leaf >= _ROOM * people)
        return replace(self, shared_by=people)._grown_to(
            {name: room for name in self.labels if name in self.grown}
        )

    def _grown_to(self, leaves: Mapping[str, int]) -> Closing:
        """Widen leaves, and leave those alone that are as wide."""
        there = {**self.grown, **self.leaves}
        return replace(
            self,
            leaves={**self.leaves, **{name: leaf for name, leaf in leaves.items() if leaf > there[name]}},
        )

    def _wider(self, columns: Iterable[str]) -> Closing | None:
        """Draw the columns with the smallest leaves from the next larger ones; the secret and its like keep theirs."""
        there = {name: max(self.leaves.get(name, 0), self.grown[name]) for name in columns}
        narrow = {name: leaf for name, leaf in there.items() if leaf < LEAVES[-1]}
        if not narrow:
            return None
        wanted = next(leaf for leaf in LEAVES if leaf > min(narrow.values()))
        return replace(
            self, leaves={**self.leaves, **{name: wanted for name, leaf in narrow.items() if leaf < wanted}}
        )

    def applied(self, chosen: Sequential) -> Sequential:
        """Change the synthesis accordingly."""
        ways: dict[str, Any] = {}
        for name, given in self.methods.items():
            asked = self.numbers_shared_by if name in self.numbers else self.shared_by
            shared = max(given.shared_by, asked)
            fresh = (
                replace(given, shared_by=shared, min_leaf=self.leaves.get(name, given.min_leaf))
                if isinstance(given, Cart)
                else replace(given, shared_by=shared)
            )
            if fresh != given:
                ways[name] = fresh
        if ways:
            before, otherwise = (
                (chosen.method, chosen.otherwise)
                if isinstance(chosen.method, Mapping)
                else ({}, chosen.method)
            )
            chosen = replace(chosen, method={**before, **ways}, otherwise=otherwise)
        if self.blur is not None:
            blurred = chosen.smoothing if isinstance(chosen.smoothing, Mapping) else {}
            chosen = replace(chosen, smoothing={**blurred, **dict.fromkeys(self.numbers, self.blur)})
        return chosen

    @property
    def said(self) -> tuple[str, ...]:
        """What was done, in plain sentences."""
        told = []
        if self.blur == BLURS[0]:
            told.append(f"Numbers that few have were drawn between those of others: {_named(self.numbers)}.")
        elif self.blur is not None:
            told.append(f"Numbers were blurred (smoothing '{self.blur}'): {_named(self.numbers)}.")
        numbers = [name for name in self.numbers if name in self.methods]
        for people, columns in ((self.shared_by, self.labels), (self.numbers_shared_by, numbers)):
            if people > 1 and columns:
                told.append(
                    f"Values that fewer than {people} people of a group share were drawn from larger groups, and "
                    f"left out where fewer have them in the whole file (shared_by): {_named(columns)}."
                )
        for leaf in sorted(set(self.leaves.values()), reverse=True):
            columns = [name for name, own in self.leaves.items() if own == leaf]
            told.append(f"Drawn from groups of at least {leaf} records (min_leaf): {_named(columns)}.")
        return tuple(told)


def _after(ladder: Sequence[Any], now: Any) -> Any:
    """Give what follows on a ladder, its first rung where nothing was done, its last where nothing follows."""
    place = ladder.index(now) if now in ladder else -1
    return ladder[min(place + 1, len(ladder) - 1)]


def _named(columns: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in columns)
