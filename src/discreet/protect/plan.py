"""A plan: treatments in order, itself a treatment, kept in a TOML file and applied again next year.

A plan file holds the steps with their parameters, never a seed or a secret key::

    name = "Public use file 2026"

    [[step]]
    treatment = "drop-identifiers"

    [[step]]
    treatment = "band"
    breaks = { age = [18, 30, 45, 65] }
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from discreet.core.constraints import Public
from discreet.core.errors import DiscreetError, ParameterError, need_known
from discreet.core.files.untrusted import read_toml
from discreet.core.guarantees import PART_OF_A_PLAN
from discreet.core.parameters import check
from discreet.core.progress import track
from discreet.core.randomness import Seed, fresh_seed, generator
from discreet.core.results import Release
from discreet.core.value_gate import MARK, holds_values, setting, settings_of
from discreet.dp.entropy import Stream
from discreet.dp.ledger import Ledger
from discreet.io.sidecar import save_text
from discreet.microdata import Microdata
from discreet.protect.treatment import Change, Treatment


@dataclass(frozen=True, repr=False)
class Plan(Treatment):
    """Treatments applied one after the other.

    It protects against what its steps protect against, in the order in which they stand.

    Parameters
    ----------
    steps
        The treatments, in order.
    title
        What the plan is for.

    What it costs
    -------------
    The sum of its steps, and sometimes more: noise added after banding is lost on the bands.
    `discreet.search` measures whole plans.

    When not to use it
    ------------------
    Do not apply a plan to another year's file without assessing the result: what was enough for one file need
    not be for the next. A guarantee of one step holds for the plan only where no other step follows or
    precedes it, so plans of several steps claim none.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet.protect import Band, DropIdentifiers
    >>> plan = Plan([DropIdentifiers(), Band(widths={"age": 10})], title="Ours")
    >>> people = Microdata(pl.DataFrame({"name": ["A"], "age": [34]}), identifiers="name")
    >>> release = plan.apply(people, seed=1)
    >>> release.data.columns, [step.treatment for step in release.log]
    (('age',), ['drop-identifiers', 'band'])
    >>> Plan.from_dict(plan.to_dict()) == plan
    True
    """

    steps: Sequence[Treatment] = ()
    title: Annotated[str, Public()] = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", tuple(self.steps))
        for step in self.steps:
            if not isinstance(step, Treatment):
                raise ParameterError(f"A plan is made of treatments; {type(step).__name__} is none.")

    def apply(
        self,
        data: Microdata,
        *,
        progress: bool = False,
        ledger: Ledger | None = None,
        record_key: str | Sequence[str] | None = None,
        seed: Seed = None,
    ) -> Release:
        """Apply the steps in order; each has a random stream of its own.

        A query stays one as long as the steps are row-wise; a step that looks at records together collects what it
        needs. ``record_key`` names the columns that tell the records apart, and must be there until the last step that
        draws by it.

        A ledger is for a plan of one step: of several together nothing is proved.
        """
        release = Release(data)
        stages = self.stages(data, ledger=ledger, record_key=record_key, seed=seed, progress=progress)
        for release in stages:  # noqa: B007
            pass
        return release

    def stages(
        self,
        data: Microdata,
        *,
        progress: bool = False,
        ledger: Ledger | None = None,
        record_key: str | Sequence[str] | None = None,
        seed: Seed = None,
    ) -> Iterator[Release]:
        """Apply the steps one by one and hand over what each has made; the last one is what `apply` gives."""
        if ledger is not None and len(self.steps) != 1:
            raise ParameterError(
                "A ledger takes releases with a guarantee, and of a plan nothing is proved unless it has one step. "
                "Apply the step with a guarantee by itself."
            )
        root = None if seed is None else generator(seed).integers(2**62)
        release = Release(data)
        for number, step in enumerate(
            track(self.steps, description="Protecting", progress=progress), start=1
        ):
            # Without a seed every step draws from the operating system: a seed made here would be one.
            own = None if root is None else int(generator(int(root), str(number), step.name).integers(2**62))
            try:
                done = step.apply(release.data, ledger=ledger, record_key=record_key, seed=own)
            except DiscreetError as error:
                raise type(error)(f"In step {number} of the plan ({step.name}): {error}") from error
            log = (*release.log, *done.log)
            if len(self.steps) == 1:
                release = replace(done, log=log)
            else:
                why_none = PART_OF_A_PLAN if done.guarantee else done.why_none or release.why_none
                release = Release(done.data, log, None, why_none)
            yield release

    def dry_run(self, data: Microdata, *, seed: Seed = None) -> Release:
        """Try the plan on the file in memory and return what it would do; nothing is written.

        The log of the result has every step with the cells it would change. Its data is the file as it was.
        """
        return replace(self.apply(data, seed=seed), data=data)

    def then(self, step: Treatment) -> Plan:
        """Return the plan with one more step."""
        return replace(self, steps=(*self.steps, step))

    def without_last(self) -> Plan:
        """Return the plan without its last step."""
        return replace(self, steps=tuple(self.steps)[:-1])

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Not used: a plan applies its steps."""
        raise ParameterError("A plan is applied as a whole with apply().")

    def __str__(self) -> str:
        title = f" '{self.title}'" if self.title else ""
        count = "1 step" if len(self.steps) == 1 else f"{len(self.steps)} steps"
        return "\n".join(
            [f"Plan{title} of {count}", *(f"  {n}. {_told(s)}" for n, s in enumerate(self.steps, 1))]
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        title = f" “{html.escape(self.title)}”" if self.title else ""
        steps = "".join(f"<li>{html.escape(_told(step))}</li>" for step in self.steps)
        return f"<h4>Plan{title}</h4><ol>{steps}</ol>"

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as it stands in TOML."""
        steps = [{"treatment": step.name, **step.to_dict()} for step in self.steps]
        return {"name": self.title, "step": steps} if self.title else {"step": steps}

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any]) -> Plan:
        """Make a plan from the content of a TOML file."""
        need_known(parameters, ("name", "step"), what="entry", before="In the plan: ", kind=ParameterError)
        check(parameters.get("name", ""), str, "name", where="In the plan")
        entries = parameters.get("step", ())
        if not isinstance(entries, list | tuple) or not all(isinstance(entry, Mapping) for entry in entries):
            raise ParameterError(
                'The steps of a plan are tables: write them as [[step]] with treatment = "…".'
            )
        steps = []
        for number, entry in enumerate(entries, start=1):
            given = dict(entry)
            name = given.pop("treatment", None)
            if not isinstance(name, str):
                raise ParameterError(
                    f'Step {number} of the plan does not say which treatment it is: treatment = "…".'
                )
            steps.append(Treatment.named(name, given))
        if not steps:
            raise ParameterError('The plan has no steps. Write them as [[step]] with treatment = "…".')
        return cls(steps, parameters.get("name", ""))

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read a plan from a TOML file."""
        return cls.from_dict(read_toml(path, "plan file"))

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the plan to a TOML file; one whose steps hold values of the data says so in its first line."""
        import tomli_w

        document = self.to_dict()
        marked = MARK if holds_values(document) else ""
        return save_text(marked + tomli_w.dumps(document), path, overwrite=overwrite)


def _told(step: Treatment) -> str:
    """Write a step with the parameters that were set, long ones cut short."""
    if isinstance(step, Plan):
        return f"plan of {len(step.steps)} steps"
    declared = settings_of("treatment", step.name)
    settings = {name: setting(declared, name, value) for name, value in step.to_dict().items()}
    given = ", ".join(f"{name} {textwrap.shorten(str(value), 80)}" for name, value in settings.items())
    return f"{step.name}: {given}" if given else step.name


@dataclass(frozen=True)
class Draft:
    """A plan in the making, tried on a file step by step and stepped back at will.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet.protect import Round
    >>> draft = Draft.of(Microdata(pl.DataFrame({"pay": [12, 17]})), seed=1)
    >>> rounded = draft.then(Round({"pay": 10}))
    >>> rounded.data.frame["pay"].to_list(), rounded.back().data.frame["pay"].to_list()
    ([10, 20], [12, 17])
    """

    release: Release
    plan: Plan
    previous: Draft | None = field(default=None, repr=False)
    seed: int = field(repr=False, kw_only=True)

    @classmethod
    def of(cls, data: Microdata, *, seed: int | None = None) -> Draft:
        """Start from a file as it is."""
        return cls(Release(data), Plan(), seed=fresh_seed() if seed is None else seed)

    @property
    def data(self) -> Microdata:
        """The file as it stands now."""
        return self.release.data

    def then(self, step: Treatment) -> Draft:
        """Try one more step."""
        number = len(self.plan.steps) + 1
        done = step.apply(self.data, seed=int(generator(self.seed, str(number), step.name).integers(2**62)))
        release = Release(done.data, (*self.release.log, *done.log))
        return Draft(release, self.plan.then(step), self, seed=self.seed)

    def back(self) -> Draft:
        """Undo the last step."""
        if self.previous is None:
            raise ParameterError("There is no step to take back.")
        return self.previous
