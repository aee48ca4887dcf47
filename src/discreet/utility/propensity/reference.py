"""Which reference fits a model and a release, and how to get it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from discreet.errors import ParameterError, unknown_name
from discreet.microdata import Microdata
from discreet.randomness import Seed
from discreet.utility.propensity.fitting import Prepared
from discreet.utility.propensity.logistic import PreparedLogit
from discreet.utility.propensity.nulls import Null, by_pairs, by_permutation, by_resynthesis, pmse_null

_NULLS = ("auto", "theory", "permutation", "pairs", "resynthesis")


@dataclass(frozen=True)
class Reference:
    """What the user asked for, to find out how large the distance of a perfect release is.

    ``fixed_columns`` says whether the model has a fixed list of predictors, ``kept`` names the unsynthesized columns.
    """

    null: str
    fixed_columns: bool
    kept: tuple[str, ...]
    copies: int
    weighted: bool
    aligned: bool
    synthesizer: Any
    n_perm: int
    n_resyntheses: int
    scale: float | Literal["auto"]
    seed: Seed
    progress: bool

    def __post_init__(self) -> None:
        if self.null not in _NULLS:
            raise ParameterError(unknown_name(str(self.null), _NULLS, what="null"))
        for name in ("n_perm", "n_resyntheses"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 2:
                raise ParameterError(f"{name} must be a whole number of at least 2.")
        if self.scale != "auto" and (isinstance(self.scale, bool | str) or not 0 < self.scale <= 1):
            raise ParameterError("tree_null_scale must be 'auto' or a number above 0, at most 1.")
        if self.null == "resynthesis" and self.synthesizer is None:
            raise ParameterError("null='resynthesis' needs the synthesizer=… that made the release.")
        if self.null == "pairs" and self.copies < 2:
            raise ParameterError(
                "null='pairs' compares copies with each other and needs a list of at least two."
            )
        if self.null == "theory" and (not self.fixed_columns or self.aligned):
            raise ParameterError(
                "null='theory' holds for model='logit' and 'linear' and for files that are not linked record by "
                "record. Use null='permutation'."
            )
        if self.null == "permutation" and self.kept:
            raise ParameterError(
                "Labels of a partly synthetic file cannot be permuted: its unsynthesized columns are the same in both "
                "files. Use null='pairs' with several copies, null='resynthesis', or model='logit' with null='theory'."
            )

    @property
    def kind(self) -> str:
        """The null to use; ``"none"`` where there is none."""
        if self.null != "auto":
            return self.null
        if self.aligned:
            return "none" if self.kept else "permutation"
        if self.synthesizer is not None:
            return "resynthesis"
        if self.fixed_columns and (not self.weighted or self.kept):
            return "theory"
        if not self.kept:
            return "permutation"
        return "pairs" if self.copies > 1 else "none"

    def found(
        self,
        original: Microdata,
        copies: Sequence[Microdata],
        ready: Sequence[Prepared],
        prepare: Callable[[Microdata, Microdata], Prepared],
    ) -> Null:
        """Compute the null."""
        stacked = ready[0].stacked
        sizes = (stacked.original_records, stacked.released_records)
        if self.kind == "none":
            return Null("none")
        if self.kind == "theory":
            first = ready[0]
            k_star = 1 + first.coefficients_of(self.kept) if isinstance(first, PreparedLogit) else 1
            mean, sd = pmse_null(k_star, *sizes)
            # Only the released file varies, given the original; its weights make it vary more.
            spread = stacked.design_effect(released=True)
            return Null("theory", mean * spread, sd * spread)
        if self.kind == "permutation":
            return by_permutation(
                ready,
                self.n_perm,
                scale=self.scale,
                fixed_columns=self.fixed_columns,
                aligned=self.aligned,
                seed=self.seed,
                progress=self.progress,
            )
        if self.kind == "pairs":
            return by_pairs(
                copies,
                prepare,
                stacked.share,
                scale=self.scale,
                fixed_columns=self.fixed_columns,
                progress=self.progress,
            )
        return by_resynthesis(
            original,
            self.synthesizer,
            sizes,
            prepare,
            self.n_resyntheses,
            seed=self.seed,
            progress=self.progress,
        )
