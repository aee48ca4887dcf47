"""Which parameters fit data best that may not be pooled? The exact joint likelihood, and any model on top of it."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from discreet.core.arrays import Array, Floats
from discreet.core.constraints import Above, AtLeast
from discreet.core.errors import DiscreetWarning, InputError, ParameterError
from discreet.core.parameters import checked
from discreet.core.progress import track
from discreet.core.randomness import Seed
from discreet.federated import moments_over_sites as sums
from discreet.federated.layouts import Group, laid_out
from discreet.federated.leakage import Leakage, Transcript
from discreet.federated.likelihood_leakage import account
from discreet.federated.masking import Masks, NoMasks, child_seed
from discreet.federated.messages import ProtocolError
from discreet.federated.normal_likelihood import (
    Conditional,
    checked_law,
    conditionals,
    from_moments,
    minus_two_log_likelihood,
)
from discreet.federated.parties import Party, Transport
from discreet.federated.secure_sums import sum_over
from discreet.federated.shared_product import joint_moments
from discreet.federated.vertical_likelihood import RING, Coordinator

if TYPE_CHECKING:
    from discreet.federated.covariance_models import CovarianceModel
    from discreet.federated.fits import Fit


CENTRAL = "coordinator"
_MOST_NOISE = 1_000.0
# The largest measured error: this times the root of the values, noise squared, by the least eigenvalue.
_ROUNDING = 2e-15
_MOST_EVALUATIONS = 100_000
_NO_MATTER = 2e-6  # rounding of an evaluation that moves no estimate by a thousandth of its standard error


class SecureMLE:
    """The joint normal likelihood over holders who send no rows, and the best parameters of a model.

    Also known as: secure maximum likelihood; secure MLE; non-secure passing.

    Parameters
    ----------
    layout
        Who holds what: `vertical`, `horizontal`, `complex_layout`, or tables whose columns say what is meant.
    mode
        ``"secure"`` runs the masked protocol for every evaluation. ``"sufficient"`` computes means and covariances once
        (by secret shares, or secure sums) and evaluates locally: the same disclosure with far less traffic.
        ``"plain"`` runs the protocol without masks, to compare.
    noise_scale
        Noise in standard deviations of each column. Unless given, 1,000 or the most that floating point allows
        at the tolerance.
    max_evaluations
        After how many evaluations the coordinator stops. Unless given, as many as the noise hides: averaging over
        all of them leaves noise of ``margin`` standard deviations.
    margin
        How many standard deviations of noise must be left after averaging.
    optimizer
        ``"scoring"`` (expected information and differences: few evaluations) or ``"L-BFGS-B"``.
    tol
        Relative tolerance of the minimum.
    chunk_rows
        Rows that are passed at a time.
    evaluations
        A file in which evaluations are kept, so that a fit goes on where a failed site ended it.
    transport
        How sites are reached; in this process unless given.
    keep
        Keep the contents of messages in the transcript, for a lesson.
    seed
        For the same masks again; only for tests.

    Examples
    --------
    >>> x = np.random.default_rng(1).normal(size=(50, 3))
    >>> secure = SecureMLE([x[:, :1], x[:, 1:2], x[:, 2:]])
    >>> found = secure.log_likelihood(np.zeros(3), np.eye(3))
    >>> abs(found - minus_two_log_likelihood(x, np.zeros(3), np.eye(3))) < 1e-6
    True
    """

    @checked
    def __init__(
        self, layout: Any, *, mode: Literal["secure", "plain", "sufficient"] = "secure",
        noise_scale: Annotated[float, AtLeast(0)] | None = None,
        max_evaluations: Annotated[int, AtLeast(1)] | None = None, margin: Annotated[float, Above(0)] = 10.0,
        optimizer: Literal["scoring", "L-BFGS-B"] = "scoring", tol: Annotated[float, Above(0)] = 1e-8,
        chunk_rows: Annotated[int, AtLeast(1)] = 16_384,
        evaluations: str | Path | None = None, transport: Transport | None = None, keep: bool = False,
        seed: Seed = None,
    ) -> None:  # fmt: skip
        self.layout = laid_out(layout, seed=seed)
        self.mode, self.margin, self.optimizer = mode, margin, optimizer
        self.tol, self.chunk_rows = tol, chunk_rows
        self.max_evaluations, self.noise_scale = max_evaluations, noise_scale
        self.evaluations = 0
        self._asked_scale, self._seed = noise_scale, seed
        self.central = Party(CENTRAL, NoMasks(0) if mode == "plain" else Masks(child_seed(seed, CENTRAL)))
        self.transport = transport or Transport(self.layout.holders.values(), keep=keep)
        self.transport.join(self.central)
        if mode == "plain":
            for holder in self.layout.holders.values():
                holder.masks = NoMasks(0)
        self._journal = Journal(evaluations) if evaluations is not None else None
        self.kept_evaluations = len(self._journal.known) if self._journal is not None else 0
        self._runs: list[Coordinator] = []
        self._moments: tuple[int, Floats, Floats] | None = None
        self._started = False
        self._made: Any = None
        self.rows = 0

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns, in the order in which mu and sigma name them."""
        return self.layout.variables

    @property
    def transcript(self) -> Transcript:
        """All messages so far."""
        return self.transport.transcript

    @property
    def leakage(self) -> Leakage:
        """What has been learned by whom so far."""
        return account(self)

    @property
    def predicted_error(self) -> float:
        """About how far rounding may move one evaluation."""
        scale = self.noise_scale or 0.0
        own = 4e-15 * self._values
        return own + (_ROUNDING * self._values**0.5 * scale**2 / self._least if self._has_noise else 0.0)

    def log_likelihood(self, mu: Any, sigma: Any) -> float:
        """Evaluate -2 log-likelihood at a mean and a covariance; infinite where that is not positive definite.

        The convention is the source's: twice the negative log-likelihood, with all constants.
        """
        mean, covariance = checked_law(mu, sigma, len(self.variables))
        if conditionals(covariance, [len(self.variables)]) is None:
            return math.inf
        self._start()
        if self.mode == "sufficient":
            rows, middle, spread = self.moments()
            return from_moments(rows, middle, spread, mean, covariance)
        orders = [[self.variables.index(name) for name in group.variables] for group in self.layout.groups]
        parts = []
        for group, order in zip(self.layout.groups, orders, strict=True):
            own = conditionals(covariance[np.ix_(order, order)], [len(columns) for columns in group.columns])
            if own is None:
                return math.inf
            parts.append(own)
        self._set_noise(parts)
        key = hashlib.sha256(mean.tobytes() + covariance.tobytes()).hexdigest()
        if self._journal is not None and key in self._journal.known:
            return self._journal.known[key]
        value = self._evaluated(mean, covariance, orders, parts)
        if self._journal is not None:
            self._journal.note(key, value)
        return value

    def moments(self) -> tuple[int, Floats, Floats]:
        """Work out rows, means and covariances (divided by n) of all variables once, without rows.

        In vertical layouts by products of secret shares, in horizontal ones by secure sums.
        """
        self._start()
        return self._computed_moments()

    def _computed_moments(self) -> tuple[int, Floats, Floats]:
        if self._moments is None:
            if self.layout.kind == "horizontal":
                self._moments = sums.horizontal_moments(self.transport, self.central, self.layout)
            else:
                self._moments = self._pooled(
                    [(*joint_moments(self.transport, self.central, group.nodes, group.columns, group.block), group)
                     for group in self.layout.groups]
                )  # fmt: skip
        return self._moments

    def fit(
        self, model: CovarianceModel, start: Any = None, *,
        bounds: Mapping[str, tuple[float | None, float | None]] | None = None,
        hessian: Literal["observed", "expected"] = "observed", progress: bool = False,
    ) -> Fit:  # fmt: skip
        """Find the parameters of a model under which the data are most likely.

        Parameters
        ----------
        model
            The model: `latent_growth`, `factor_model`, `saturated` or a `RAMModel`.
        start
            Where to begin; the model knows a place unless given.
        bounds
            ``{parameter: (lowest, highest)}`` instead of those of the model.
        hessian
            Standard errors from the ``"observed"`` curvature (about q² + q further evaluations for q parameters), or
            from the ``"expected"`` one, which costs none.
        progress
            Show how many evaluations were made, on a terminal.
        """
        from discreet.federated.fits import fitted

        self._start()
        self._made = track(count(), description="Evaluations", progress=progress)
        try:
            return fitted(self, model, start, bounds, hessian)
        finally:
            self._made.close()
            self._made = None

    def _start(self) -> None:
        """Let everybody join once, and hold what they tell against each other."""
        if self._started:
            return
        groups = self.layout.groups
        if self.layout.kind == "vertical" and len(groups[0].nodes) == 1 and self.mode == "secure":
            warnings.warn(
                "One holder has all the data: no protocol is needed, and the likelihood is evaluated as it is.",
                DiscreetWarning,
                stacklevel=3,
            )
        if self.mode == "sufficient":
            # Nobody joins a likelihood that is not evaluated: owners need not allow it.
            self.rows = self._computed_moments()[0]
        else:
            self._join()
        if self._journal is not None:
            self._journal.belongs_to({"variables": list(self.variables), "rows": self.rows})
        self._started = True

    def _join(self) -> None:
        for group in self.layout.groups:
            run = Coordinator(self.central, self.transport.new_run(), group.nodes, group.columns, group.block)
            self.central.plays(run)
            self.transport.carry(run.join())
            _check_joined(run)
            self._runs.append(run)
        self.rows = sum(next(iter(run.joined.values()))[0] for run in self._runs)

    @property
    def _values(self) -> int:
        return self.rows * len(self.variables)

    @property
    def _has_noise(self) -> bool:
        return self.mode == "secure" and any(len(group.nodes) > 1 for group in self.layout.groups)

    _least = 1.0

    def _set_noise(self, parts: list[list[Conditional]]) -> None:
        """Choose the noise: as much as rounding allows, and enough for the evaluations that are allowed."""
        if self.noise_scale is not None and self.max_evaluations is not None and self._least != 1.0:
            return
        least = 1.0
        for run, own in zip(self._runs, parts, strict=True):
            for node, part in zip(run.nodes, own, strict=True):
                size = np.where(run.joined[node][1] > 0, run.joined[node][1], 1.0)
                least = min(least, float(np.linalg.eigvalsh(part.covariance / np.outer(size, size)).min()))
        self._least = min(max(least, 1e-12), 1 - 1e-12)
        if not self._has_noise:
            self.noise_scale = self.noise_scale or 0.0
            self.max_evaluations = self.max_evaluations or _MOST_EVALUATIONS
            return
        if self.noise_scale is None:
            allowed = max(1e-3 * self.tol * self._values, _NO_MATTER)
            by_rounding = math.sqrt(allowed * self._least / (_ROUNDING * self._values**0.5))
            self.noise_scale = min(_MOST_NOISE, by_rounding)
        hidden = int((self.noise_scale / self.margin) ** 2)
        if self.max_evaluations is None and self._asked_scale is None:
            self.max_evaluations = min(hidden, _MOST_EVALUATIONS)
        elif self.max_evaluations is None:
            self.max_evaluations = max(1, min(hidden, _MOST_EVALUATIONS))
        if self.max_evaluations > max(hidden, 1) or (not hidden and self._asked_scale is None):
            raise ParameterError(
                f"Noise of {self.noise_scale:.3g} standard deviations hides the rows from averaging over {hidden:,} "
                f"evaluations, not {self.max_evaluations:,}. Lower max_evaluations or margin, loosen tol, or use "
                "mode='sufficient', which gives no more away."
            )

    def _evaluated(
        self, mu: Floats, sigma: Floats, orders: list[list[int]], parts: list[list[Conditional]]
    ) -> float:
        assert self.max_evaluations is not None
        made = self.evaluations + self.kept_evaluations
        if made >= self.max_evaluations:
            raise ProtocolError(
                f"{made:,} evaluations were made, which is all that the noise hides (max_evaluations). Use "
                "mode='sufficient', hessian='expected', or a looser tol."
            )
        self.evaluations += 1
        if self._made is not None:
            next(self._made, None)
        if self.layout.kind == "horizontal":
            law = {"mu": mu.tolist(), "sigma": sigma.tolist()}
            asked = {"kind": "likelihood", "columns": list(self.variables), **law}
            return self._sum(self.layout.nodes, asked)
        if self.layout.kind == "vertical":
            return self._group(
                0, mu[orders[0]], sigma[np.ix_(orders[0], orders[0])], parts[0], keep_total=False
            )
        for at, (order, own) in enumerate(zip(orders, parts, strict=True)):
            self._group(at, mu[order], sigma[np.ix_(order, order)], own, keep_total=True)
        return self._summed()

    def _group(
        self, at: int, mu: Floats, sigma: Floats, parts: list[Conditional], *, keep_total: bool
    ) -> float:
        run = self._runs[at]
        if len(run.nodes) == 1 and not keep_total:
            holder = self.layout.holders.get(run.nodes[0])
            if holder is None:
                raise ParameterError("One site has all the data: fit the model there.")
            return minus_two_log_likelihood(holder.matrix(run.columns[0], run.block), mu, sigma)
        if len(run.nodes) == 1:
            self.transport.carry(run.alone(self.evaluations, mu, sigma))
        else:
            begun = run.evaluate(
                self.evaluations, mu, parts, factor=self.noise_scale or 0.0, chunk_rows=self.chunk_rows,
                keep_total=keep_total,
            )  # fmt: skip
            self.transport.carry(begun)
        if not run.finished or (not keep_total and run.result is None):
            raise ProtocolError(
                "The likelihood did not come back: a site fell silent. No partial result is kept."
            )
        return 0.0 if keep_total else float(run.result or 0.0)

    def _summed(self) -> float:
        firsts = list(dict.fromkeys(run.nodes[0] for run in self._runs))
        own = RING.words([sum(run.correction - run.last_mask for run in self._runs)])
        if len(firsts) < 2:
            raise ParameterError(
                "Every group of rows begins with the same holder, so that its totals would show. Let groups begin with "
                "different holders."
            )
        asked = {"kind": "held-totals", "keys": [f"{run.run} {self.evaluations}" for run in self._runs]}
        return self._sum(firsts, asked, own)

    def _sum(self, nodes: Sequence[str], asked: Mapping[str, Any], own: Array | None = None) -> float:
        found = sum_over(
            self.transport, self.central, nodes, asked, size=1, ring=RING, own=own, seed=self._seed
        )
        return float(found[0])

    def _pooled(self, found: list[tuple[int, Floats, Floats, Group]]) -> tuple[int, Floats, Floats]:
        total = sum(rows for rows, *_ in found)
        size = len(self.variables)
        mean, second = np.zeros(size), np.zeros((size, size))
        placed = []
        for rows, own, spread, group in found:
            order = [group.variables.index(name) for name in self.variables]
            placed.append((rows, own[order], spread[np.ix_(order, order)]))
            mean += rows / total * own[order]
        for rows, own, spread in placed:
            second += rows / total * (spread + np.outer(own - mean, own - mean))
        return total, mean, second


def _check_joined(run: Coordinator) -> None:
    if set(run.joined) != set(run.nodes):
        raise ProtocolError("Not every site joined. Nothing was computed.")
    rows = {told[0] for told in run.joined.values()}
    if len(rows) != 1:
        raise InputError("The holders do not have the same number of rows. Link the rows one to one first.")
    if rows == {0}:
        raise InputError("The holders have no rows.")
    digests = {told[2] for told in run.joined.values()}
    if len(digests) != 1:
        raise InputError("The rows do not link one to one: the holders do not have the same people.")


# Evaluations that were made, kept in a file: a fit that failed goes on without asking the sites again.


class Journal:
    """Values of the likelihood by a digest of where it was evaluated; one line each, written as they come.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "fit.jsonl"
    >>> Journal(path).note("ab", 3.5)
    >>> Journal(path).known
    {'ab': 3.5}
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.known: dict[str, float] = {}
        self._about: dict[str, Any] | None = None
        if self.path.exists():
            self._read()

    def belongs_to(self, about: Mapping[str, Any]) -> None:
        """Refuse to go on with the evaluations of other data."""
        if self._about is None:
            self._about = dict(about)
            self._append({"about": self._about})
        elif self._about != dict(about):
            raise InputError(f"'{self.path.name}' holds evaluations of other data. Give another file.")

    def note(self, key: str, value: float) -> None:
        """Keep an evaluation."""
        self.known[key] = value
        self._append({"at": key, "value": value.hex()})

    def _append(self, line: Mapping[str, Any]) -> None:
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        except OSError as error:
            raise InputError(f"'{self.path.name}' cannot be written.") from error

    def _read(self) -> None:
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"'{self.path.name}' cannot be read.") from error
        for at, line in enumerate(lines):
            try:
                entry = json.loads(line)
                if "about" in entry:
                    self._about = entry["about"]
                else:
                    self.known[str(entry["at"])] = float.fromhex(entry["value"])
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                if at == len(lines) - 1:
                    # A run that was killed may have left its last line unfinished.
                    continue
                raise InputError(f"'{self.path.name}' is no list of evaluations.") from error
