"""Which cells of keys by target give something away, which of them may be left out, and which are no surprise.

The arithmetic of the disclosure measures of Raab, Nowok and Dibben for synthetic data. Whether a cell is
disclosive is decided on the full counts; exclusions take cells out of the numerators afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Integers
from discreet.core.errors import ParameterError
from discreet.risk.attribution_scores import cell_scores, chances, own_chances, target_baseline

LARGEST_CELL = 5  # records from which on a cell is about a group rather than a person
REASONS = ("excluded value", "missing target", "missing key", "excluded pair", "denominator over the limit")
COLUMNS = (
    "Dorig",
    "Dsyn",
    "iS",
    "DiS",
    "DiSCO",
    "DiSDiO",
    "CAPd",
    "baseCAPd",
    "DCAP",
    "TCAP",
    "denom_max",
    "denom_mean",
)


@dataclass(frozen=True)
class Exclusions:
    """Which cells never count as a disclosure.

    ``denom_lim`` only flags unless ``exclude_over`` is set; ``strict`` refuses values that do not occur.
    """

    values: tuple[Any, ...] = ()
    pairs: tuple[tuple[str, Any, Any], ...] = ()
    missing_target: bool = True
    missing_keys: tuple[str, ...] = ()
    denom_lim: int = LARGEST_CELL
    exclude_over: bool = False
    denominator: Literal["released", "original"] = "released"
    one_way: tuple[float, float] = (50, 90)
    two_way: tuple[float, float] = (4, 80)
    strict: bool = True

    def reasons(self, joint: engine.JointCounts, keys: Sequence[str]) -> Integers:
        """Number the first reason that takes out each cell whatever its size, 1 to 4; 0 where it stays in."""
        value = joint.value_labels["s0"]
        texts = engine.as_text(value)
        masks: list[tuple[int, Flags]] = []
        if self.values:
            masks.append((1, self._is_excluded(texts)[joint.values]))
        if not self.missing_target:
            masks.append((2, value.is_null().to_numpy()[joint.values]))
        if self.missing_keys:
            masks.append((3, missing_key(joint, keys, self.missing_keys)[joint.owners]))
        if self.pairs:
            masks.append((4, self._is_paired(joint, keys, texts)))
        reason = np.zeros(len(joint.owners), dtype=np.int64)
        for number, mask in masks:
            reason = np.where((reason == 0) & mask, number, reason)
        return reason

    def over_limit(self, reason: Integers, sizes: Integers) -> Integers:
        """Add the last reason: a denominator over the limit."""
        if not self.exclude_over:
            return reason
        return np.where((reason == 0) & (sizes > self.denom_lim), len(REASONS), reason)

    def _is_excluded(self, texts: pl.Series) -> Flags:
        found = np.zeros(len(texts), dtype=bool)
        for position, value in enumerate(self.values, start=1):
            hit = _equals(texts, value)
            if self.strict and not hit.any():
                raise ParameterError(
                    f"Excluded value number {position} does not occur in the target. Check how it is written."
                )
            found |= hit
        return found

    def _is_paired(self, joint: engine.JointCounts, keys: Sequence[str], texts: pl.Series) -> Flags:
        found = np.zeros(len(joint.owners), dtype=bool)
        for position, (key, level, value) in enumerate(self.pairs, start=1):
            if key not in keys:
                raise ParameterError(
                    f"Excluded pair number {position} names '{key}', which is not one of the keys."
                )
            classes = _equals(engine.as_text(joint.class_labels[f"k{keys.index(key)}"]), level)
            values = _equals(texts, value)
            if self.strict and not (classes.any() and values.any()):
                raise ParameterError(
                    f"Excluded pair number {position} names a level of '{key}' or of the target that does not occur."
                )
            found |= classes[joint.owners] & values[joint.values]
        return found


@dataclass(frozen=True)
class DisclosureCells:
    """The cells of one target with what they disclose.

    Attributes
    ----------
    in_original, in_released
        The class of the cell has one target value in that file, and it is this one.
    present
        Someone in the release has the keys.
    apparent
        The class has one target value in the release, whichever.
    reason_original, reason_released, reason_both
        Why a cell is taken out of the measures on one file or on both; 0 where it is not.
    sizes
        The denominator of each cell.
    """

    joint: engine.JointCounts
    keys: tuple[str, ...]
    in_original: Flags
    in_released: Flags
    present: Flags
    apparent: Flags
    reason_original: Integers
    reason_released: Integers
    reason_both: Integers
    sizes: Integers

    @classmethod
    def of(cls, joint: engine.JointCounts, keys: tuple[str, ...], exclusions: Exclusions) -> DisclosureCells:
        """Decide on the full counts what is disclosive, then which cells are taken out."""
        size_original, size_released = (
            joint.class_original[joint.owners],
            joint.class_released[joint.owners],
        )
        in_released = (joint.released == size_released) & (joint.released > 0)
        alone = np.zeros(joint.class_labels.height, dtype=bool)
        alone[joint.owners[in_released]] = True
        reason = exclusions.reasons(joint, keys)
        sizes = joint.released if exclusions.denominator == "released" else joint.original
        return cls(
            joint=joint,
            keys=keys,
            in_original=(joint.original == size_original) & (joint.original > 0),
            in_released=in_released,
            present=size_released > 0,
            apparent=alone[joint.owners],
            reason_original=exclusions.over_limit(reason, joint.original),
            reason_released=exclusions.over_limit(reason, joint.released),
            reason_both=exclusions.over_limit(reason, sizes),
            sizes=sizes,
        )

    @property
    def correct(self) -> Flags:
        """The cells that DiSCO counts."""
        found: Flags = self.in_released & (self.joint.original > 0) & (self.reason_both == 0)
        return found

    def shares(self) -> dict[str, float | None]:
        """Add the cells up to the measures of one target, in percent."""
        joint, mass, kept = self.joint, self.joint.mass, self.reason_both == 0
        people, released = mass.sum(), joint.released.sum()
        in_both = mass[self.present].sum()
        # iS and the CAP family leave out only what never counts, not cells over the limit of a denominator.
        counted = (self.reason_both == 0) | (self.reason_both == len(REASONS))
        scores = cell_scores(joint)
        guess = np.nan_to_num(chances(joint, scores, "proportional"))
        own = np.nan_to_num(own_chances(scores))
        inside = np.divide(
            joint.released,
            joint.class_released[joint.owners],
            out=np.zeros(len(mass)),
            where=joint.released > 0,
        )
        right, base = self.correct, 100 * target_baseline(joint)
        dcap = 100 * (guess * mass)[counted].sum() / people
        tcap = 100 * mass[right].sum() / in_both if in_both else None
        apparent = mass[self.apparent & kept].sum()
        denominators = self.sizes[right]
        weights = joint.original[right]
        return {
            "Dorig": 100 * mass[self.in_original & (self.reason_original == 0)].sum() / people,
            "Dsyn": 100
            * float(joint.released[self.in_released & (self.reason_released == 0)].sum())
            / released,
            "iS": 100 * mass[self.present & counted].sum() / people,
            "DiS": 100 * apparent / people,
            "DiSCO": 100 * mass[right].sum() / people,
            "DiSDiO": 100 * mass[right & self.in_original].sum() / people,
            "CAPd": 100 * (own * mass)[counted].sum() / people,
            "baseCAPd": base,
            "DCAP": dcap,
            "TCAP": tcap,
            "denom_max": float(denominators.max()) if len(denominators) else None,
            "denom_mean": float(denominators.mean()) if len(denominators) else None,
            "CAPs": 100 * float((inside * joint.released)[counted].sum()) / released,
            "DCAP_scaled": _scaled(dcap, base),
            "TCAP_scaled": _scaled(tcap, base),
            "DCAP_matched": 100 * (guess * mass)[counted].sum() / in_both if in_both else None,
            "TCAP_conditional": 100 * mass[right].sum() / apparent if apparent else None,
            "denom_mean_records": float((denominators * weights).sum() / weights.sum())
            if len(denominators)
            else None,
        }

    def excluded(self) -> pl.DataFrame:
        """Count what each reason took out of each measure, in records."""
        joint = self.joint
        cells = {
            "Dorig": (self.in_original, self.reason_original, joint.original),
            "Dsyn": (self.in_released, self.reason_released, joint.released),
            "DiS": (self.apparent, self.reason_both, joint.original),
            "DiSCO": (self.in_released, self.reason_both, joint.original),
            "DiSDiO": (self.in_released & self.in_original, self.reason_both, joint.original),
        }
        return pl.DataFrame(
            [
                {"reason": reason}
                | {
                    name: int(count[mask & (why == number)].sum())
                    for name, (mask, why, count) in cells.items()
                }
                for number, reason in enumerate(REASONS, start=1)
            ]
        )

    def one_way(self, threshold: tuple[float, float]) -> pl.DataFrame:
        """Name the target value that most of the correct disclosures have, and whether it stands for nearly all.

        ``flagged`` when it has more than ``threshold[0]`` records and more than ``threshold[1]`` percent of them.
        """
        joint, right = self.joint, self.correct
        counts = np.bincount(
            joint.values[right], weights=joint.original[right], minlength=joint.value_labels.height
        )
        total = int(counts.sum())
        if not total:
            return pl.DataFrame(schema=_ONE_WAY)
        top = int(np.lexsort((np.arange(len(counts)), -counts))[0])
        share = 100 * counts[top] / total
        return pl.DataFrame(
            [
                (
                    engine.as_text(joint.value_labels["s0"])[top],
                    100 * int(joint.value_original[top]) / int(joint.original.sum()),
                    total,
                    int(counts[top]),
                    float(share),
                    bool(counts[top] > threshold[0] and share > threshold[1]),
                )
            ],
            schema=_ONE_WAY,
            orient="row",
        )

    def two_way(self, threshold: tuple[float, float]) -> pl.DataFrame:
        """List the pairs of a key value and a target value that go together in the original anyway.

        They come from correct disclosures in cells of more than ``threshold[0]`` records; a pair is listed when
        more than ``threshold[1]`` percent of the people with the key value have the target value.
        """
        joint = self.joint
        large = self.correct & (joint.original > threshold[0])
        found = [pl.DataFrame(schema=_TWO_WAY)]
        if not large.any():
            return found[0]
        values, width = joint.value_labels["s0"], joint.value_labels.height
        for i, key in enumerate(self.keys):
            levels, codes = joint.key_levels(i)
            level = codes[joint.owners]
            code = level * width + joint.values
            wanted, of_large = np.unique(code[large], return_inverse=True)
            at = np.minimum(np.searchsorted(wanted, code), len(wanted) - 1)
            hit = wanted[at] == code
            with_level = np.bincount(level, weights=joint.original)[wanted // width]
            with_both = np.bincount(at[hit], weights=joint.original[hit])
            shares = 100 * with_both / with_level
            kept = np.flatnonzero(shares > threshold[1])
            if not len(kept):
                continue
            pairs = pl.DataFrame(
                {
                    "key": [key] * len(kept),
                    "level": engine.as_text(levels[wanted[kept] // width]),
                    "value": engine.as_text(values[wanted[kept] % width]),
                    "npairs": np.bincount(of_large, weights=joint.original[large])[kept],
                    "key_total": with_level[kept],
                    "key_target_total": with_both[kept],
                    "pct": shares[kept],
                }
            )
            found.append(pairs.cast(_TWO_WAY))  # type: ignore[arg-type]
        order = ["npairs", "key", "level", "value"]
        return pl.concat(found).sort(order, descending=[True, False, False, False])

    def flags(self) -> pl.DataFrame:
        """Say for each cell which measures count its original records."""
        kept = self.reason_both == 0
        return pl.DataFrame(
            {
                "unique_original": self.joint.class_original[self.joint.owners] == 1,
                "unique_released": self.joint.class_released[self.joint.owners] == 1,
                "iS": self.present,
                "Dorig": self.in_original & (self.reason_original == 0),
                "DiS": self.apparent & kept,
                "DiSCO": self.correct,
                "DiSDiO": self.correct & self.in_original,
                "denominator": self.sizes,
            }
        )


def identity_shares(
    size_original: Integers,
    size_released: Integers,
    records: tuple[int, int],
    *,
    left_out: Flags | None = None,
    denominator: Literal["original", "released"] = "original",
) -> dict[str, float | int]:
    """Count who is alone in the original and in the release, in percent of the records.

    ``records`` are the sizes of the two files; classes ``left_out`` count nowhere.
    """
    inside = np.ones(len(size_original), dtype=bool) if left_out is None else ~left_out
    one, other = (size_original == 1) & inside, (size_released == 1) & inside
    matches, replicated = int((one & (size_released > 0)).sum()), int((one & other).sum())
    base = records[0] if denominator == "original" else records[1]
    return {
        "UiO": 100 * int(one.sum()) / records[0],
        "UiS": 100 * int(other.sum()) / records[1],
        "UiOiS": 100 * matches / records[0],
        "repU": 100 * replicated / base,
        "uniques_original": int(one.sum()),
        "uniques_released": int(other.sum()),
        "unique_matches": matches,
        "replicated": replicated,
    }


def missing_key(joint: engine.JointCounts, keys: Sequence[str], named: Sequence[str]) -> Flags:
    """Find the classes in which one of the named keys is missing."""
    found = np.zeros(joint.class_labels.height, dtype=bool)
    for key in named:
        found |= joint.class_labels[f"k{list(keys).index(key)}"].is_null().to_numpy()
    return found


_ONE_WAY = {
    "value": pl.String,
    "share_of_file": pl.Float64,
    "disclosive": pl.Int64,
    "with_value": pl.Int64,
    "share_of_disclosive": pl.Float64,
    "flagged": pl.Boolean,
}
_TWO_WAY = {
    "key": pl.String,
    "level": pl.String,
    "value": pl.String,
    "npairs": pl.Int64,
    "key_total": pl.Int64,
    "key_target_total": pl.Int64,
    "pct": pl.Float64,
}


def _equals(texts: pl.Series, value: Any) -> Flags:
    written = (
        None
        if value is None
        else str(int(value))
        if isinstance(value, float) and value.is_integer()
        else str(value)
    )
    if isinstance(value, bool):
        written = str(value).lower()
    return texts.eq_missing(written).to_numpy()


def _scaled(figure: float | None, base: float) -> float | None:
    return None if figure is None or base >= 100 else 100 * (figure - base) / (100 - base)
