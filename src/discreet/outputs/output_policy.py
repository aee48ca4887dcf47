"""How much risk an organization takes with outputs: thresholds set once, the same for every discipline.

They stand in the table ``[outputs]`` of a policy file, beside or without the rules for microdata::

    name = "Our research data center"

    [outputs]
    threshold = 10
    zeros_are_disclosive = true
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from discreet.core.constraints import AtLeast, Share
from discreet.core.errors import InputError, ParameterError, unknown_name
from discreet.core.files.inputs import note_read
from discreet.core.files.untrusted import parsed_json, read_toml
from discreet.core.parameters import typed_parameters

Negative = Literal["review", "absolute"]

VECTOR_GRAPHICS = (".svg", ".svgz", ".pdf", ".eps", ".ps", ".emf", ".wmf", ".ai", ".dxf", ".fig", ".gph")
PICKLES = (".pkl", ".pickle", ".joblib", ".dill", ".pt", ".pth", ".rds", ".rdata", ".rda", ".npy", ".mat")
PROGRAMS = (".exe", ".dll", ".so", ".bat", ".com", ".msi", ".jar", ".scr", ".js", ".vbs")

_ACRO = {
    "safe_threshold": "threshold",
    "safe_dof_threshold": "dof_threshold",
    "safe_nk_n": "nk_n",
    "safe_nk_k": "nk_k",
    "safe_pratio_p": "p_ratio",
    "check_missing_values": "check_missing",
    "survival_safe_threshold": "survival_threshold",
    "zeros_are_disclosive": "zeros_are_disclosive",
}


@dataclass(frozen=True)
@typed_parameters
class OutputPolicy:
    """The thresholds that outputs are held against.

    Parameters
    ----------
    threshold
        Fewest distinct people (units) behind a published number. Exactly this many pass.
    dof_threshold
        Fewest residual degrees of freedom of a model or test.
    nk_n, nk_k
        Dominance: the ``nk_n`` largest contributions may not be more than the share ``nk_k`` of a total.
    p_ratio
        p%: what is left besides the two largest must be at least this share of the largest.
    survival_threshold
        Fewest exits between published times, and fewest still at risk.
    zeros_are_disclosive
        Whether an empty cell, and a line with everybody in one cell, tells too much.
    round_base
        Base for rounding.
    check_missing
        Whether missing values in the aggregated variable are shown to a human.
    difference_threshold
        Fewest people in the difference of two outputs; ``threshold`` unless given.
    negative
        What to do where contributions are negative and shares of a total have no meaning: ``review``, or judge by
        ``absolute`` values.
    weights_public
        Whether weights are known outside: then a respondent is looked for by the own value, not weight times value.
    largest_share_limit
        Where set, a Herfindahl index fails that proves the largest unit to have more than this share.
    blocked
        Endings of file kinds that never go out: vector graphics hold the data points, pickles can hold anything and
        run code when read.

    Examples
    --------
    >>> OutputPolicy().threshold, OutputPolicy(threshold=5).difference_threshold
    (10, 5)
    >>> OutputPolicy.load("business-data").nk_k
    0.75
    >>> OutputPolicy(threshold=0)
    Traceback (most recent call last):
    discreet.core.errors.ParameterError: threshold must be a whole number of at least 1.
    """

    name: str = "Research data center"
    description: str = ""
    threshold: Annotated[int, AtLeast(1)] = 10
    dof_threshold: Annotated[int, AtLeast(1)] = 10
    nk_n: Annotated[int, AtLeast(1)] = 2
    nk_k: Annotated[float, Share(above=True)] = 0.90
    p_ratio: Annotated[float, Share(above=True)] = 0.10
    survival_threshold: Annotated[int, AtLeast(1)] = 10
    zeros_are_disclosive: bool = True
    round_base: Annotated[int, AtLeast(1)] = 5
    check_missing: bool = False
    difference_threshold: Annotated[int, AtLeast(1)] | None = None
    negative: Negative = "review"
    weights_public: bool = False
    largest_share_limit: Annotated[float, Share(above=True)] | None = None
    blocked: tuple[str, ...] = VECTOR_GRAPHICS + PICKLES + PROGRAMS

    def __post_init__(self) -> None:
        if self.difference_threshold is None:
            object.__setattr__(self, "difference_threshold", self.threshold)
        object.__setattr__(self, "blocked", tuple(ending.lower() for ending in self.blocked))

    @classmethod
    def load(cls, source: str | Path | OutputPolicy | Mapping[str, Any] | None = None) -> OutputPolicy:
        """Take a policy, the name of a template, a TOML file with a table ``[outputs]``, or an ACRO configuration."""
        if source is None:
            return cls()
        if isinstance(source, OutputPolicy):
            return source
        if isinstance(source, Mapping):
            return cls.from_dict(source)
        if not isinstance(source, str | Path):
            raise ParameterError(
                "policy is an OutputPolicy, a mapping, the name of a template or a file, "
                f"not a {type(source).__name__}."
            )
        if str(source) in cls.templates():
            text = (files("discreet.outputs") / "policies" / f"{source}.toml").read_text(encoding="utf-8")
            return cls.from_dict(tomllib.loads(text), origin=str(source))
        path = Path(source)
        if not path.is_file():
            raise InputError(
                f"There is no policy file '{path.name or source}' there, and no template of that name. "
                f"Templates: {', '.join(cls.templates())}."
            )
        if path.suffix.lower() != ".json":
            return cls.from_dict(read_toml(path, "policy file"), origin=path.name)
        note_read(path)
        try:
            document = parsed_json(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, ValueError) as error:
            raise InputError(
                f"The policy file '{path.name}' cannot be read ({type(error).__name__})."
            ) from error
        return cls.from_dict(document, origin=path.name)

    @classmethod
    def templates(cls) -> tuple[str, ...]:
        """Name the policies that ship with the package."""
        folder = files("discreet.outputs") / "policies"
        return tuple(
            sorted(i.name.removesuffix(".toml") for i in folder.iterdir() if i.name.endswith(".toml"))
        )

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], *, origin: str = "policy") -> OutputPolicy:
        """Make a policy from the content of a file: its table ``[outputs]``, or an ACRO configuration."""
        if any(name in document for name in _ACRO if name.startswith("safe_")):
            given = {_ACRO[name]: value for name, value in document.items() if name in _ACRO}
            return cls(name="ACRO configuration", **given)
        if "outputs" not in document:
            raise ParameterError(f"In {origin}: there is no table [outputs] with the thresholds for outputs.")
        table = document["outputs"]
        known = [item.name for item in fields(cls) if item.name not in ("name", "description")]
        if not isinstance(table, Mapping):
            raise ParameterError(f"In {origin}: outputs is a table, [outputs], with one line a threshold.")
        for name in table:
            if name not in known:
                raise ParameterError(f"In {origin}: {unknown_name(name, known, what='entry')}")
        title = str(document.get("name", origin))
        given = {n: tuple(v) if n == "blocked" and isinstance(v, list) else v for n, v in table.items()}
        return cls(name=title, description=str(document.get("description", "")), **given)

    def to_dict(self) -> dict[str, Any]:
        """Return the policy as it stands in TOML."""
        table = {
            item.name: getattr(self, item.name)
            for item in fields(self)
            if item.name not in ("name", "description") and getattr(self, item.name) is not None
        }
        table["blocked"] = list(self.blocked)
        return {"name": self.name, "description": self.description, "outputs": table}

    def to_acro(self) -> dict[str, Any]:
        """Return the thresholds under the names that ACRO gives them."""
        return {theirs: getattr(self, ours) for theirs, ours in _ACRO.items()}

    def but(self, **changes: Any) -> OutputPolicy:
        """Return the policy with some thresholds changed."""
        if "threshold" in changes and self.difference_threshold == self.threshold:
            changes.setdefault("difference_threshold", None)
        return replace(self, **changes)

    def blocks(self, path: str | Path) -> str | None:
        """Say why a file may not go out, by its ending; None where the ending is no reason."""
        endings = [ending.lower() for ending in Path(path).suffixes[-2:]]
        for ending in endings:
            if ending not in self.blocked:
                continue
            if ending in VECTOR_GRAPHICS:
                return f"a vector graphic ({ending}) holds the data points it draws; save it as .png"
            if ending in PICKLES:
                return f"a file of kind {ending} can hold the data behind a result; write the numbers as CSV or JSON"
            return f"files of kind {ending} never go out under this policy"
        return None
