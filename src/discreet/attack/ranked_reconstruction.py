"""Which records could be behind published counts? Candidates, ranked by how often they turn up.

Dick et al. (2023): many sets of records are fitted to the same counts from random starts; what turns up again and
again is claimed. On small areas every count is an equation over all combinations, and integer programs say what is
certain (`discreet.tables.reconstruct` does the same for tables as they are printed).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet.attack.counting_queries import Coded, Query, Schema, coded_queries, codes_of, records_of
from discreet.core.arrays import Flags, Floats, Integers, Singles
from discreet.core.cards import Figure, measure
from discreet.core.constraints import Above, AtLeast
from discreet.core.errors import InputError, ParameterError, load_extra
from discreet.core.parameters import checked
from discreet.core.progress import track
from discreet.core.randomness import fresh_seed, generator
from discreet.core.results import Detail, Measure
from discreet.core.wording import percent

DICK_2023 = (
    "Dick, T., Dwork, C., Kearns, M., Liu, T., Roth, A., Vietri, G. and Wu, Z. S. (2023). Confidence-ranked "
    "reconstruction of census microdata from published statistics. Proceedings of the National Academy of Sciences "
    "120(8), e2218605120. doi:10.1073/pnas.2218605120"
)
AYDORE_2021 = (
    "Aydore, S., Brown, W., Kearns, M., Kenthapadi, K., Melis, L., Roth, A. and Siva, A. A. (2021). Differentially "
    "private query release through adaptive projection. Proceedings of Machine Learning Research 139, 457–467."
)
ONLY_WHAT_IS_BEHIND = (
    "Only the records that the counts were made from can be rebuilt: if these were swapped, perturbed or synthesized "
    "before, the originals are not."
)
MOST_CELLS = 20_000
"""The most combinations that integer programs are asked about."""

FREQUENCY = "freq"
RUNS = "runs"


@measure(
    room="attack",
    title="Reconstruction from tables",
    question="Which records could be behind the published counts?",
    headline="people that the rebuilt records are off, a published count",
    chapter="rebuilt",
    place=3,
    work="whole-file",
    references=(DICK_2023, AYDORE_2021),
    figures={
        "value": Figure("Mean error of a published count, in people", better="higher"),
        "mean_error": Figure("Mean error of a published count, in people", better="higher"),
        "max_error": Figure("Largest error of a published count, in people"),
        "prototypes": Figure("Different records rebuilt"),
        "certain": Figure("People in a combination whose count is certain", unit="share", better="lower"),
        "solutions": Figure("Sets of records that fit"),
        "queries": Figure("Published counts"),
        "suppressed": Figure("Counts that were not published"),
    },
)
@checked
def reconstruct(
    queries: Sequence[Query],
    answers: Any,
    schema: Schema,
    n: Annotated[int, AtLeast(1)],
    *,
    method: Literal["relaxed", "exact"] = "relaxed",
    tolerance: Annotated[float, AtLeast(0)] = 0.0,
    noisy: bool = False,
    runs: Annotated[int, AtLeast(1)] = 100,
    rows: Annotated[int, AtLeast(1)] = 1000,
    steps: Annotated[int, AtLeast(1)] = 1000,
    learning_rate: Annotated[float, Above(0)] = 0.1,
    batch: Annotated[int, AtLeast(1)] = 1024,
    prior: Any = None,
    draw: Literal["sample", "argmax"] = "sample",
    once_a_run: bool = False,
    max_solutions: int = 10_000,
    device: Device = "auto",
    workers: int | None = None,
    progress: bool = False,
    seed: int | None = None,
) -> Measure:
    """Which records could be behind these published counts, and which of them turn up most often?

    Also known as: confidence-ranked reconstruction; RAP-Rank; RAP.

    Parameters
    ----------
    queries
        What was counted: conjunctions such as ``{"sex": "f", "age": ["18-64", "65+"]}`` (`marginal_queries`,
        `table_queries`, `queries_of` for a `discreet.tables.Table`).
    answers
        The counts: numbers, pairs (low, high) where a count is known between two numbers, None where it was suppressed.
    schema
        Attributes and their categories.
    n
        How many records there are.
    method
        ``relaxed`` fits many sets of records and ranks what they share; ``exact`` asks integer programs what is certain
        (at most 20,000 combinations) and counts the sets that fit.
    tolerance
        How far counts may be from the truth, where they were rounded: 2 for rounding to 5.
    noisy
        Let counts lie below 0 or above n, as those with noise may; the fit comes as near as it can.
    runs, rows, steps, learning_rate, batch
        Of ``relaxed``: how many fits, how many rows in each, how many steps of Adam, their size, and how many counts
        are looked at in a step.
    prior
        Records to begin from, of last year or of a neighbor, instead of random ones.
    draw
        Whether a row becomes a record by a draw, or by the likeliest category of each attribute.
    once_a_run
        Count a record once a run, however often it stands in it.
    max_solutions
        Where ``exact`` stops counting.
    device, workers
        ``auto`` takes a graphics card where torch sees one, else that many threads (all processors unless given).
    progress
        Show a progress bar on a terminal.
    seed
        Run b draws from the b-th stream of it.

    Returns
    -------
    Measure
        ``value`` is ``mean_error``, by how many people rebuilt records miss a published count. ``detail``:
        ``ranking`` (a row a rebuilt record: its values, ``freq`` and ``rank``, equal ones alike; for
        `audit_reconstruction`), ``runs`` (the errors of each), and with ``exact`` ``cells`` (bounds of every
        combination).

    How to read it
    --------------
    The ranking alone is no disclosure: what turns up most often is what is common. Hold it against the records with
    `audit_reconstruction`, before and after the tables are protected.

    When not to trust it
    --------------------
    Where the error is large the fit failed, and a better one could know more: more steps, more rows. Counts that
    contradict each other are fitted as well as they can be.

    Examples
    --------
    >>> schema = {"sex": ["f", "m"], "age": ["young", "old"]}
    >>> queries = [{"sex": "f"}, {"sex": "m"}, {"age": "young"}, {"age": "old"}]
    >>> found = reconstruct(queries, [3, 0, 1, 2], schema, 3, method="exact")
    >>> found.detail["ranking"].select("sex", "age", "freq").rows()
    [('f', 'old', 2), ('f', 'young', 1)]
    >>> found.figures["certain"], found.figures["solutions"]
    (1.0, 1)
    """
    coded = coded_queries(queries, schema)
    published = _published(answers, len(queries), n, tolerance, noisy)
    known = published.known
    if not known.any():
        raise InputError("Every count is suppressed: there is nothing to rebuild from.")
    held = Coded(coded.names, coded.categories, coded.starts, coded.factors, coded.of, coded.queries[known])
    told = [ONLY_WHAT_IS_BEHIND]
    counts = {"queries": int(known.sum()), "suppressed": int((~known).sum())}
    if method == "exact":
        return _exactly(held, published, n, max_solutions, counts, told)
    start = None if prior is None else codes_of(records_of(prior, list(schema)), held)
    root = fresh_seed() if seed is None else seed
    low, high = published.low[known] / n, published.high[known] / n
    projection = Projection(held, low, high, rows, steps, learning_rate, batch, root, start)
    ranking, errors = None, []
    made = projection.runs(runs, device=device, workers=workers)
    for run, p in enumerate(track(made, runs, "Rebuilding records", progress=progress)):
        share = projection.answers(p)
        off = n * np.maximum(np.maximum(low - share, share - high), 0.0)
        errors.append({"run": run, "mean_error": float(off.mean()), "max_error": float(off.max())})
        codes = _records(p, held, n, draw, generator(root, "reconstruct", "records", str(run)))
        ranking = _counted_in(ranking, codes, held, once=once_a_run)
    assert ranking is not None
    table = pl.DataFrame(errors)
    mean, largest = float(table["mean_error"].mean()), float(table["max_error"].max())  # type: ignore[arg-type]
    if mean > 0.5:
        told.append(
            f"Rebuilt records miss a published count by {mean:.2f} people in the mean: the counts contradict each "
            "other (rounding, noise, swapping), or the fit had too few steps or rows. A better one may find more."
        )
    final = ranking
    return Measure(
        name="reconstruct",
        value=mean,
        figures={"mean_error": mean, "max_error": largest, "prototypes": final.height, **counts},
        meaning=(
            f"{runs:,} sets of {n:,} records that fit {counts['queries']:,} published counts (off by {mean:.2f} people "
            f"in the mean) hold {final.height:,} different records. How many of them are people of the file, and "
            "whose, only an audit against the file tells."
        ),
        caveats=told,
        parameters={"method": method, "runs": runs, "rows": rows, "steps": steps, "n": n, "seed": seed},
        detail=Detail(ranking=lambda: _ranked(final, held), runs=lambda: table),
    )


@dataclass(frozen=True)
class _Published:
    """What each count is known to be: between two numbers, or not at all."""

    low: Floats
    high: Floats
    known: Flags


def _published(answers: Any, queries: int, n: int, tolerance: float, noisy: bool) -> _Published:
    given = answers.tolist() if hasattr(answers, "tolist") else list(answers)
    if len(given) != queries:
        raise ParameterError(
            f"There are {queries:,} queries and {len(given):,} answers; give one answer a query."
        )
    low, high = np.full(queries, np.nan), np.full(queries, np.nan)
    for i, answer in enumerate(given):
        if answer is None or (isinstance(answer, float) and np.isnan(answer)):
            continue
        ends = answer if isinstance(answer, list | tuple) else (answer, answer)
        try:
            low[i], high[i] = (float(end) for end in ends)
        except (TypeError, ValueError) as error:
            raise ParameterError(
                f"Answer {i + 1} must be a count, a pair (low, high), or None where it was suppressed."
            ) from error
    known = ~np.isnan(low)
    if (low[known] > high[known]).any():
        raise ParameterError("An answer between two numbers must have the smaller one first.")
    low, high = low - tolerance, high + tolerance
    if not noisy:
        if (high[known] < 0).any():
            raise ParameterError("Counts must not be negative. Where they carry noise, say noisy=True.")
        if (low[known] > n).any():
            raise ParameterError(
                f"A count is larger than n = {n:,}, the number of records. Where counts carry noise, say noisy=True."
            )
        low, high = np.maximum(low, 0.0), np.minimum(high, float(n))
    return _Published(low, high, known)


def _exactly(  # noqa: PLR0917
    coded: Coded, published: _Published, n: int, limit: int, counts: dict[str, int], told: list[str]
) -> Measure:
    from scipy import sparse

    from discreet.tables.table_reconstruction import solved_cells

    if coded.combinations > MOST_CELLS:
        raise ParameterError(
            f"The schema has {coded.combinations:,} combinations; integer programs are asked about {MOST_CELLS:,} at "
            "most. Use method='relaxed', or rebuild smaller areas with fewer attributes."
        )
    everybody = np.ones((1, coded.combinations), dtype=bool)
    sums = sparse.csr_matrix(
        np.vstack([everybody, *(coded.cells(query)[None, :] for query in coded.queries)]), dtype=float
    )
    known = published.known
    low, high = np.r_[float(n), published.low[known]], np.r_[float(n), published.high[known]]
    found = solved_cells(sums, np.ceil(low - 1e-9), np.floor(high + 1e-9), max_solutions=limit)
    if found.conflicts:
        told.append(
            f"{found.conflicts:,} counts contradict the others (rounding, noise, swapping) and were loosened as little "
            "as possible; give a tolerance where it is known how far counts may be off."
        )
    sure = found.low == found.high
    certain = float(found.low[sure].sum()) / n
    combos = list(product(*coded.categories))
    cells = pl.DataFrame(
        combos, schema=list(coded.names), orient="row", infer_schema_length=None
    ).with_columns(lower=pl.Series(found.low), upper=pl.Series(found.high), solved=pl.Series(sure))
    many = (
        "more than the limit"
        if found.solutions is None or found.solutions > limit
        else f"{found.solutions:,}"
    )
    kept = np.flatnonzero(found.low > 0)
    sized = (
        cells[kept]
        .drop("lower", "upper", "solved")
        .with_columns(pl.Series(FREQUENCY, found.low[kept].astype(np.int64)))
    )
    return Measure(
        name="reconstruct",
        value=0.0 if not found.conflicts else None,
        figures={
            "certain": certain,
            "solutions": found.solutions,
            "prototypes": len(kept),
            **counts,
        },
        meaning=(
            f"{percent(certain)} of {n:,} people stand in a combination whose count is certain; the number of sets of "
            f"records that fit all {counts['queries']:,} counts is {many}."
        ),
        caveats=told,
        parameters={"method": "exact", "n": n},
        detail=Detail(ranking=lambda: _in_ranks(sized), cells=lambda: cells),
    )


def _records(p: Singles, coded: Coded, n: int, draw: str, rng: np.random.Generator) -> Integers:
    """Turn chances into n records: every row equally often, the rest by lot."""
    rows = p.shape[1]
    used = np.concatenate([np.repeat(np.arange(rows), n // rows), rng.permutation(rows)[: n % rows]])
    made = np.empty((n, len(coded.names)), dtype=np.int64)
    for a in range(len(coded.names)):
        block = p[coded.starts[a] : coded.starts[a + 1]]
        if draw == "argmax":
            made[:, a] = block.argmax(axis=0)[used]
            continue
        running = np.cumsum(block.astype(np.float64), axis=0)
        running /= running[-1]
        made[:, a] = (rng.random(n)[None, :] > running[:, used]).sum(axis=0)
    return made


def _counted_in(before: pl.DataFrame | None, codes: Integers, coded: Coded, *, once: bool) -> pl.DataFrame:
    """Add the records of a run to what was seen; no run is kept."""
    places = [str(a) for a in range(len(coded.names))]
    smallest = pl.UInt16 if max(map(len, coded.categories)) < 2**16 else pl.UInt32
    seen = (
        pl.DataFrame(codes, schema=dict.fromkeys(places, pl.Int64))
        .cast(smallest)
        .group_by(places)
        .agg(pl.len().cast(pl.Int64).alias(FREQUENCY))
        .with_columns(pl.lit(1, dtype=pl.Int64).alias(RUNS))
    )
    if once:
        seen = seen.with_columns(pl.col(RUNS).alias(FREQUENCY))
    if before is None:
        return seen
    return pl.concat([before, seen]).group_by(places).agg(pl.col(FREQUENCY, RUNS).sum())


def _ranked(counter: pl.DataFrame, coded: Coded) -> pl.DataFrame:
    """Give codes their names back and put the records in order."""
    named = counter.select(
        *(
            pl.Series(name, list(own), strict=False).gather(counter[str(a)].to_numpy()).alias(name)
            for a, (name, own) in enumerate(zip(coded.names, coded.categories, strict=True))
        ),
        FREQUENCY,
        RUNS,
    )
    return _in_ranks(named)


def _in_ranks(table: pl.DataFrame) -> pl.DataFrame:
    names = [name for name in table.columns if name not in (FREQUENCY, RUNS)]
    return table.with_columns(
        pl.col(FREQUENCY).rank("dense", descending=True).cast(pl.Int64).alias("rank")
    ).sort([FREQUENCY, *names], descending=[True, *([False] * len(names))], nulls_last=True)


# Many runs of relaxed projection, on the processor or on a graphics card, each with a seed of its own.


Device = Literal["auto", "cpu", "cuda"]
_PRODUCTS_AT_ONCE = 1 << 27


@dataclass(frozen=True)
class Projection:
    """What every run has in common.

    ``low`` and ``high`` are shares: between them a query is answered as published.
    """

    coded: Coded
    low: Floats
    high: Floats
    rows: int
    steps: int
    learning_rate: float
    batch: int
    seed: int
    prior: Integers | None = None

    def start(self, run: int) -> tuple[Singles, np.random.Generator]:
        """Free numbers to begin with: random, or bent towards records of a prior."""
        rng = generator(self.seed, "reconstruct", str(run))
        theta = rng.normal(size=(self.coded.width, self.rows)).astype(np.float32)
        if self.prior is not None:
            many = len(self.prior)
            picked = (
                rng.permutation(many)[: self.rows]
                if many >= self.rows
                else rng.integers(many, size=self.rows)
            )
            top, bottom = theta.max(axis=0), theta.min(axis=0)
            theta[:] = 2 * np.minimum(bottom, -np.abs(bottom))
            for a, start in enumerate(self.coded.starts[:-1]):
                theta[start + self.prior[picked, a], np.arange(self.rows)] = np.maximum(top, np.abs(top))
        return theta, rng

    def runs(self, count: int, *, device: Device = "auto", workers: int | None = None) -> Iterator[Singles]:
        """The chances of all rows after each run, in the order of the runs."""
        if device == "cuda" or (device == "auto" and _card_is_there()):
            yield from _on_card(self, count)
            return
        threads = max(1, min(workers or os.cpu_count() or 1, count))
        with ThreadPoolExecutor(threads) as pool:
            # A few runs ahead of what is read: the chances of all runs at once would fill the memory.
            waiting = [pool.submit(self._on_processor, run) for run in range(min(2 * threads, count))]
            for run in range(count):
                yield waiting.pop(0).result()
                if run + 2 * threads < count:
                    waiting.append(pool.submit(self._on_processor, run + 2 * threads))

    def _on_processor(self, run: int) -> Singles:
        from discreet.attack.projection_kernels import members_of, projected

        theta, rng = self.start(run)
        members, bounds = members_of(self.coded.factors)
        made: Singles = projected(
            theta,
            self.coded.starts,
            members,
            bounds,
            self.coded.queries,
            self.low,
            self.high,
            self.steps,
            self.batch,
            self.learning_rate,
            rng,
        )
        return made

    def answers(self, p: Singles) -> Floats:
        """The share that each query counts, given the chances of a run."""
        from discreet.attack.projection_kernels import answered, factored, members_of

        members, bounds = members_of(self.coded.factors)
        s = np.empty((len(bounds) - 1, p.shape[1]), dtype=np.float32)
        made = np.empty(len(self.coded.queries))
        factored(p, members, bounds, s)
        answered(s, self.coded.queries, np.empty(p.shape[1], dtype=np.float32), made)
        return made


def _card_is_there() -> bool:
    """Whether torch is installed and sees a card; without torch nobody asks for one."""
    import importlib.util

    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def _on_card(projection: Projection, count: int) -> Iterator[Singles]:
    """All runs side by side on a graphics card, as many at a time as its memory takes."""
    torch = load_extra("torch", extra="deep", purpose="Rebuilding on a graphics card")
    if not torch.cuda.is_available():
        raise ParameterError("device='cuda' needs a graphics card, and torch sees none. Use device='cpu'.")
    free, _ = torch.cuda.mem_get_info()
    # Six arrays of free numbers and two of factors are held at once, in 4 bytes each.
    one = 4 * projection.rows * (6 * projection.coded.width + 2 * len(projection.coded.factors))
    together = int(max(1, min(count, free // (4 * one))))
    for begin in range(0, count, together):
        yield from _runs_on_card(torch, projection, range(begin, min(begin + together, count)))


def _runs_on_card(torch: Any, own: Projection, numbers: Sequence[int]) -> Iterator[Singles]:
    card, coded = torch.device("cuda"), own.coded
    started = [own.start(run) for run in numbers]
    theta = torch.tensor(np.stack([theta for theta, _ in started]), device=card)
    draws = torch.Generator(device=card)
    draws.manual_seed(int(started[0][1].integers(2**62)))
    allowed = torch.tensor(coded.factors.astype(np.float32), device=card)
    # One factor more that is always 1 stands where a query has fewer than others.
    table = torch.tensor(np.where(coded.queries < 0, len(coded.factors), coded.queries), device=card)
    low, high = (torch.tensor(ends, device=card, dtype=torch.float32) for ends in (own.low, own.high))
    first, second = torch.zeros_like(theta), torch.zeros_like(theta)
    chunk = max(1, _PRODUCTS_AT_ONCE // (len(numbers) * own.rows))
    pieces = range(0, len(table), chunk)
    blocks = [slice(int(a), int(b)) for a, b in zip(coded.starts[:-1], coded.starts[1:], strict=True)]

    def softmax() -> Any:
        return torch.cat([torch.softmax(theta[:, block], dim=1) for block in blocks], dim=1)

    for step in range(1, own.steps + 1):
        p = softmax()
        s = torch.cat([allowed @ p, torch.ones_like(p[:, :1])], dim=1)
        made = torch.cat(
            [
                torch.stack([s[:, table[q : q + chunk, k]] for k in range(table.shape[1])])
                .prod(dim=0)
                .mean(dim=2)
                for q in pieces
            ],
            dim=1,
        )
        off = torch.clamp(made - low, max=0) + torch.clamp(made - high, min=0)
        size = off.abs()
        if float(size.sum(dim=1).max()) <= 1e-6:
            break
        picked = torch.multinomial(size + 1e-12, own.batch, replacement=True, generator=draws)
        often = torch.zeros_like(size).scatter_add_(1, picked, torch.ones_like(picked, dtype=size.dtype))
        norm = torch.sqrt((often * off * off).sum(dim=1, keepdim=True)).clamp(min=1e-20)
        pull = often * off / (norm * own.batch * own.rows)
        slope = torch.zeros_like(s)
        for q in pieces:
            part = table[q : q + chunk]
            values = [s[:, part[:, k]] for k in range(part.shape[1])]
            for k in range(part.shape[1]):
                others = pull[:, q : q + chunk, None]
                for j, value in enumerate(values):
                    if j != k:
                        others = others * value
                slope.index_add_(1, part[:, k], others.expand(-1, -1, own.rows).contiguous())
        back = allowed.T @ slope[:, :-1]
        gradient = torch.cat(
            [p[:, b] * (back[:, b] - (p[:, b] * back[:, b]).sum(dim=1, keepdim=True)) for b in blocks], dim=1
        )
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient * gradient
        theta = theta - own.learning_rate * (first / (1 - 0.9**step)) / (
            torch.sqrt(second / (1 - 0.999**step)) + 1e-8
        )
    yield from softmax().cpu().numpy()
