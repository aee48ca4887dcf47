"""How far can one record move the propensity mean squared error between a file and a synthetic one?"""

from __future__ import annotations

from typing import Literal

from discreet.core.errors import ParameterError
from discreet.core.parameters import checked

SensitivityKind = Literal["published", "tight"]


@checked
def pmse_sensitivity(n: int, *, kind: SensitivityKind = "published") -> float:
    """How far replacing one of ``n`` records can move the pMSE of the best tree, against a file of the same size.

    A tree whose leaves hold a synthetic and b original records each has pMSE = 1/4 - GI/(2n) with GI the sum of
    a b / (a + b). Moving one original record between two leaves changes GI by two terms of opposite sign, each at most
    n/(n + 1); so does the best of any family of partitions that does not depend on the original.

    Parameters
    ----------
    n
        Number of records of each file.
    kind
        ``"published"``: 1/n (Snoke and Slavković 2018), which adds the two terms as if they had one sign. ``"tight"``:
        1/(2(n + 1)), which is attained.

    Examples
    --------
    >>> pmse_sensitivity(10), round(pmse_sensitivity(10, kind="tight"), 6)
    (0.1, 0.045455)
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 2:
        raise ParameterError("n must be a whole number of 2 or more.")
    if kind not in ("published", "tight"):
        raise ParameterError("kind must be 'published' or 'tight'.")
    return 1 / n if kind == "published" else 1 / (2 * (n + 1))
