"""Spectral anonymization: perturb numbers in the basis of their singular vectors and turn them back."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet.core.arrays import Flags, Floats
from discreet.core.constraints import Above, AtLeast, ColumnNames
from discreet.core.errors import ColumnError, DiscreetWarning, ParameterError
from discreet.core.method_cards import method
from discreet.core.parameters import keep_as_tuples
from discreet.core.wording import percent
from discreet.dp.entropy import Stream
from discreet.microdata import Microdata
from discreet.protect import number_blocks
from discreet.protect.spectral_measures import (
    EQUAL,
    asymptotic_cov,
    expected_match_rate,
    match_measures,
    relative_error,
    standard_error_inflation,
)
from discreet.protect.treatment import Change, Treatment, numeric

__all__ = [
    "SpectralAnonymize",
    "asymptotic_cov",
    "expected_match_rate",
    "relative_error",
    "standard_error_inflation",
]

_ROWS = 2**16
"""Records that are worked on at a time on the way to the singular vectors."""
_LOOKED_AT = 10_000
"""Masked records whose nearest original is looked for, at most; fewer in files of more than 100,000 records."""


@method(
    aim="statistics",
    work="whole-file",
    references=(
        "Lasko, T. A. and Vinterbo, S. A. (2010). Spectral anonymization of data. IEEE Transactions on "
        "Knowledge and Data Engineering 22(3), 437–446.",
    ),
    tells=("diagnostics",),
)
@dataclass(frozen=True)
class SpectralAnonymize(Treatment):
    """Mask numbers in the basis of their singular vectors, so that moments survive and records do not.

    It protects against recognizing somebody by their numbers: the released records are made of the moments of
    the file, not of single records (methods O and P).

    The centered columns are written as U D V', every column of U is perturbed on its own, and the result is turned
    back with D V' and moved to the old means:

    ``O``
        A random rotation of each column of U. Given means and covariances, the released records carry nothing of
        single ones: they are a draw from a normal distribution with the sample's moments. Skewness, bounds and
        non-linear structure are lost.
    ``P``
        A random permutation of each column of U. Means are kept exactly, and the marginal of every component.
    ``J``
        Random signs. Of n records, n / 2^p are released *unchanged*.

    Also known as: spectral anonymization; SA; P-SA; J-SA; O-SA.

    Parameters
    ----------
    columns
        Numeric, continuous columns; the numeric sensitive ones unless named.
    method
        ``"O"``, ``"P"`` or ``"J"``.
    standardize
        Divide the columns by their standard deviations first and multiply back afterwards.
    recenter
        Shift the result of ``O`` and ``J`` back to the original means.
    components
        How many leading singular vectors are perturbed; all unless given.
    by
        Columns within whose groups the file is masked. Without them a masked record no longer belongs to its values
        in the other columns. Every group needs at least five records a column.
    missing
        ``"error"``, or ``"complete"``: records with missing values cannot be masked, and their known values in
        these columns are made missing too. The log says how many they are.
    round_integers
        Round whole-number columns, which keeps their type; otherwise they become decimal.
    clip_to_range
        Pull values outside the original range of their column back to its end.
    exact_match_tol
        Masked records nearer than this to an original one count as matches.

    Notes
    -----
    A random rotation of a unit vector is evenly distributed on the unit sphere whatever the vector was, so O draws
    ``z / ||z||`` with normal z instead of an n × n matrix. The work is O(n p²) for all three methods.

    The log reports, under ``diagnostics``: the largest change of a mean, the relative change of the covariance
    matrix (Frobenius), the mean distance of masked records to the nearest original one (``euc``), the share of
    matches and what theory expects, and the smallest relative gap between neighboring singular values. Survey
    weights are not used: weighted moments are not kept. `asymptotic_cov` and `standard_error_inflation` say what the
    masking costs in precision.

    What it costs
    -------------
    Shape: skewness, bounds and non-linear relations; precision, as if the file were smaller. Relations with
    columns that were not masked are lost, except within ``by``.

    When not to use it
    ------------------
    Do not use method ``"J"`` on few columns: n / 2^p records are released unchanged. Do not use it on
    categories, counts with many zeros, or heavy tails, whose outliers can dominate a singular vector.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> firms = pl.DataFrame(rng.normal(50, 5, (40, 2)), schema=["sales", "costs"])
    >>> release = SpectralAnonymize(["sales", "costs"], method="P").apply(Microdata(firms), seed=1)
    >>> abs(release.data.frame["sales"].mean() - firms["sales"].mean()) < 1e-10
    True
    >>> release.log[0].parameters["diagnostics"]["expected_matches"]
    0.025
    """

    columns: ColumnNames | None = None
    method: Literal["O", "P", "J"] = "O"
    standardize: bool = False
    recenter: bool = False
    components: Annotated[int, AtLeast(1)] | None = None
    by: ColumnNames | None = None
    missing: Literal["error", "complete"] = "error"
    round_integers: bool = True
    clip_to_range: bool = False
    exact_match_tol: Annotated[float, Above(0)] = 1e-6

    def __post_init__(self) -> None:
        keep_as_tuples(self, "columns", "by")
        if self.columns is not None and self.components is not None and self.components > len(self.columns):
            raise ParameterError(
                f"components is {self.components}, but there are {len(self.columns)} columns."
            )
        if self.columns is not None and len(self.columns) == 1 and self.method != "O":
            raise ParameterError(_ONE_DIMENSION)

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Mask the block of columns, group by group."""
        names = numeric(data, self.columns, treatment=self.name)
        strata = number_blocks.own_strata(data, self.by, names, treatment=self.name)
        block = number_blocks.NumberBlock.read(data, names, beside=strata, treatment=self.name)
        matrix = block.matrix()
        full: Flags = np.asarray(~np.isnan(matrix).any(axis=1))
        self._check(matrix, full, names)
        codes = number_blocks.stratum_codes(block.table, strata)
        if strata:
            self._check_sizes(codes[full], len(names))
        constant = block.constant()
        made = np.full_like(matrix, np.nan)
        parts = number_blocks.groups(codes[full])[0] if strata else [np.arange(int(full.sum()))]
        inside = np.flatnonzero(full)
        spectra: list[_Spectrum] = []
        for number, part in enumerate(parts):
            rows = inside[part]
            everything = len(rows) == len(matrix)
            masked, spectrum = self._masked(
                matrix if everything else matrix[rows], stream("vectors", str(number))
            )
            spectra.append(spectrum)
            if everything:
                made = masked
            else:
                made[rows] = masked
        for at, name in enumerate(names):
            if name in constant:
                # What a constant column gets back differs in the last digit only; its own value is exact.
                made[full, at] = matrix[full, at]
        if self.clip_to_range:
            np.clip(made, np.nanmin(matrix, axis=0), np.nanmax(matrix, axis=0), out=made)
        columns = block.columns(made, round_integers=self.round_integers)
        released = np.column_stack([columns[name].cast(pl.Float64).to_numpy() for name in names])
        diagnostics = self._diagnostics(matrix[full], released[full], spectra, stream)
        notes, warned = self._notes(
            block, spectra, diagnostics, constant=constant, gaps=int((~full).sum()), grouped=bool(strata)
        )
        for warning in warned:
            warnings.warn(warning, DiscreetWarning, stacklevel=4)
        return Change(
            columns=columns,
            notes=(*notes, *number_blocks.weight_note(data), *warned),
            parameters={"diagnostics": diagnostics},
            internal={"singular_values": [spectrum.values.tolist() for spectrum in spectra]},
        )

    def _check(self, matrix: Floats, full: Flags, names: Sequence[str]) -> None:
        gaps = int((~full).sum())
        if gaps and self.missing == "error":
            name = names[int(np.isnan(matrix).any(axis=0).argmax())]
            raise ColumnError(
                f"{gaps:,} records have missing values in the columns of spectral-anonymize (the first is '{name}'). "
                "Fill them, or set missing='complete': these records then lose their values in these columns."
            )
        if full.sum() < 2:
            raise ParameterError("spectral-anonymize needs at least 2 records without missing values.")
        if len(names) == 1 and self.method != "O":
            raise ParameterError(_ONE_DIMENSION)
        if self.components is not None and self.components > len(names):
            raise ParameterError(f"components is {self.components}, but there are {len(names)} columns.")

    def _check_sizes(self, codes: np.ndarray, columns: int) -> None:
        sizes = np.bincount(codes)
        small = int(((sizes > 0) & (sizes < 5 * columns)).sum())
        if small:
            raise ParameterError(
                f"{small:,} groups of 'by' have fewer than {5 * columns} complete records, five a column. "
                "Use coarser groups, or fewer columns."
            )

    def _masked(self, matrix: Floats, rng: np.random.Generator) -> tuple[Floats, _Spectrum]:
        mean = matrix.mean(axis=0)
        scale = np.ones(matrix.shape[1])
        if self.standardize:
            spread = matrix.std(axis=0, ddof=1)
            scale = np.where(spread > 1e-14 * np.abs(mean), spread, 1.0)
        centered = np.asfortranarray((matrix - mean) / scale)
        axes, rank = _axes(centered)
        scores = np.asfortranarray(centered @ axes)
        values = np.sqrt((scores**2).sum(axis=0))
        perturbed = rank if self.components is None else min(self.components, rank)
        if rank == 1 and self.method != "O":
            raise ParameterError(_ONE_DIMENSION)
        for k in range(perturbed):
            # Scores are U times D, so what happens to a column of U happens to them; only O needs D.
            if self.method == "P":
                rng.shuffle(scores[:, k])
            elif self.method == "J":
                np.negative(scores[:, k], out=scores[:, k], where=rng.integers(2, size=len(scores)) == 1)
            else:
                rng.standard_normal(out=scores[:, k])
                scores[:, k] *= values[k] / np.linalg.norm(scores[:, k])
        turned = np.matmul(scores, axes.T, out=centered)
        if self.method == "P" or self.recenter:
            # A permutation keeps sums up to rounding; this takes the rounding away too.
            turned -= turned.mean(axis=0)
        return turned * scale + mean, _Spectrum(len(matrix), perturbed, rank, values[:rank])

    def _diagnostics(
        self, original: Floats, released: Floats, spectra: Sequence[_Spectrum], stream: Stream
    ) -> dict[str, Any]:
        before, after = _covariance(original), _covariance(released)
        size = float(np.linalg.norm(before))
        n = len(original)
        rows = None
        looked_at = min(_LOOKED_AT, max(1_000, _LOOKED_AT * 100_000 // n))
        if n > looked_at:
            rows = np.sort(stream("looked-at").choice(n, looked_at, replace=False))
        expected = (
            sum(s.records * expected_match_rate(self.method, s.records, s.perturbed, s.rank) for s in spectra)
            / n
        )
        return {
            "largest_mean_change": float(np.abs(released.mean(axis=0) - original.mean(axis=0)).max()),
            "covariance_change": float(np.linalg.norm(after - before)) / size if size else 0.0,
            **match_measures(original, released, tolerance=self.exact_match_tol, rows=rows),
            "expected_matches": expected,
            "looked_at": n if rows is None else len(rows),
            "smallest_gap": min(spectrum.gap for spectrum in spectra),
        }

    def _notes(
        self,
        block: number_blocks.NumberBlock,
        spectra: Sequence[_Spectrum],
        diagnostics: dict[str, Any],
        *,
        constant: Sequence[str],
        gaps: int,
        grouped: bool,
    ) -> tuple[list[str], list[str]]:
        kept = (
            "Means are kept exactly" if self.method == "P" else "Means and covariances are right on average"
        )
        notes = [f"Spectral anonymization by method {self.method} of {len(block.names)} columns. {kept}."]
        notes += [f"Column '{name}' does not vary and stays as it is." for name in constant]
        if not grouped:
            notes.append(
                "Masked values no longer belong to the other columns of their record; by= masks in groups."
            )
        if gaps:
            notes.append(
                f"{gaps:,} records with missing values were left out: these columns are missing there now."
            )
        if any(spectrum.rank < len(block.names) - len(constant) for spectrum in spectra):
            notes.append(
                "Some columns follow from the others; as many singular vectors were perturbed as there are."
            )
        if any(spectrum.gap < EQUAL for spectrum in spectra):
            notes.append("Two singular values are equal: the asymptotic formulas do not hold.")
        if diagnostics["looked_at"] < sum(spectrum.records for spectrum in spectra):
            notes.append(
                f"Matches were looked for among {diagnostics['looked_at']:,} masked records drawn at random."
            )
        exact = "means" if self.method == "P" else "means and covariances"
        notes += number_blocks.rounding_note(block, round_integers=self.round_integers, what=exact)
        if self.clip_to_range:
            notes.append(
                "Values were pulled back to the range of their column, which moves means and covariances."
            )
        warned = []
        unchanged = diagnostics["expected_matches"] * sum(spectrum.records for spectrum in spectra)
        if self.method == "J" and unchanged >= 1:
            warned.append(
                f"Method J releases about {unchanged:,.0f} records UNCHANGED "
                f"({percent(diagnostics['expected_matches'])} of the file, where all signs are plus). "
                "Use method 'O' or 'P' unless that is acceptable."
            )
        return notes, warned


@dataclass(frozen=True)
class _Spectrum:
    """What was perturbed in one group of records."""

    records: int
    perturbed: int
    rank: int
    values: Floats

    @property
    def gap(self) -> float:
        """The smallest distance of neighboring singular values, as a share of the larger one."""
        if len(self.values) < 2:
            return 1.0
        return float((-np.diff(self.values) / self.values[:-1]).min())


_ONE_DIMENSION = (
    "With a single column (or columns that all follow from one) method 'P' would publish every value and 'J' leave "
    "half of the records unchanged. Use method='O', or name more columns."
)


def _axes(centered: Floats) -> tuple[Floats, int]:
    """Give the right singular vectors, largest first, and how many singular values are not zero."""
    n, p = centered.shape
    triangle = np.zeros((0, p))
    for start in range(0, n, _ROWS):
        # Folding block after block into one triangle keeps all digits, which sums of cross-products would not.
        block = np.vstack([triangle, centered[start : start + _ROWS]])
        triangle = np.asarray(np.linalg.qr(block, mode="r"))
    _, values, right = np.linalg.svd(triangle, full_matrices=False)
    axes = right.T
    # The sign of a singular vector is arbitrary; fixing it keeps the same seed giving the same bytes everywhere.
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1.0, 1.0)
    limit = np.finfo(float).eps * max(n, p)
    rank = int((values > limit * values[0]).sum()) if values.size and values[0] > 0 else 0
    return np.ascontiguousarray(axes[:, :rank]), rank


def _covariance(matrix: Floats) -> Floats:
    return np.atleast_2d(np.cov(matrix, rowvar=False))
