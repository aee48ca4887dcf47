"""The compiled search and fits: propose changes of one variable in one or two records, take the best.

Every target is a set of conditions: sums over records of a function of the record that are to be zero. A change
alters the functions of the records it touches and nothing else, so a proposal costs a few operations however long
the file is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.compiling import compiled, inner
from discreet.synth.from_outputs.bound_targets import BETWEEN, LOG, LOOKUP, POWER, Columns

LOGIT, LINEAR, TABLE, MEANS, MEDIANS, CORRELATION = range(6)
COEFFICIENT, RESIDUAL, EXPLAINED, ERROR = range(4)
FIXED, LEVEL, REAL, WHOLE = range(4)


class Plan(NamedTuple):
    """What does not change during a search.

    By block (one a target): kind, columns of base and outcome (-1 for none), ranges of columns and conditions, and
    where its matrices start. By condition: what it is about, which coefficient, and which column a share is of.
    """

    columns: Columns
    kind: Integers
    base: Integers
    outcome: Integers
    first_column: Integers
    last_column: Integers
    first_condition: Integers
    last_condition: Integers
    first_entry: Integers
    about: Integers
    which: Integers
    share_of: Integers


class Metric(NamedTuple):
    """What is refreshed now and then: coefficients, centers, and how much each condition counts.

    ``low`` and ``high`` by condition: share, mean, or limits of a median; ``slack``: how far off costs nothing;
    ``entries``: quadratic forms of the coefficient conditions, block by block, or, where the slack of coefficients is
    not zero, the matrix that turns sums into errors; ``inverses``: inverse information matrices; ``center``: by block
    the residual variance, degrees of freedom and moments that its functions need.
    """

    beta: Floats
    low: Floats
    high: Floats
    importance: Floats
    slack: Floats
    entries: Floats
    inverses: Floats
    center: Floats


class Moves(NamedTuple):
    """Which variables may change, how, and between which records.

    ``order`` lists the records of each mover grouped by what must agree, and alike ones side by side; ``group_low``
    and ``group_high`` bound the group at each place of that list. ``focus`` are places of it drawn by leverage.
    """

    movers: Integers
    redraw: Integers
    levels: Integers
    band_start: Integers
    bands: Floats
    partner_start: Integers
    partners: Integers
    block_start: Integers
    blocks: Integers
    order: Integers
    group_low: Integers
    group_high: Integers
    focus: Integers


@inner
def _value(columns: Columns, column: int, row: Floats) -> float:
    product = 1.0
    for f in range(columns.start[column], columns.start[column + 1]):
        x = row[columns.variable[f]]
        kind = columns.kind[f]
        if kind == LOOKUP:
            product *= columns.table[columns.offset[f] + int(x)]
        elif kind == BETWEEN:
            if x < columns.low[f] or x > columns.high[f]:
                return 0.0
        elif kind == LOG:
            product *= np.log(x)
        elif kind == POWER:
            product *= x ** columns.low[f]
        else:
            product *= x
        if product == 0.0:
            return 0.0
    return product


@inner
def _model(  # noqa: PLR0917
    plan: Plan, metric: Metric, row: Floats, block: int, x: Floats, out: Floats
) -> None:
    first, last = plan.first_column[block], plan.last_column[block]
    size = last - first
    eta = 0.0
    for c in range(size):
        x[c] = _value(plan.columns, first + c, row)
        eta += x[c] * metric.beta[first + c]
    y = _value(plan.columns, plan.outcome[block], row)
    spread = 1.0
    if plan.kind[block] == LOGIT:
        chance = 1.0 / (1.0 + np.exp(-eta))
        rest = y - chance
        spread = chance * (1.0 - chance)
    else:
        rest = y - eta
    start = plan.first_condition[block]
    for c in range(size):
        out[start + c] = x[c] * rest
    entry = plan.first_entry[block]
    for k in range(start + size, plan.last_condition[block]):
        about = plan.about[k]
        if about == RESIDUAL:
            out[k] = rest * rest
        elif about == EXPLAINED:
            away = y - metric.center[block, 2]
            out[k] = rest * rest - metric.low[k] * away * away
        else:
            j = plan.which[k]
            reach = 0.0
            for c in range(size):
                if x[c] != 0.0:
                    reach += metric.inverses[entry + j * size + c] * x[c]
            if plan.kind[block] == LOGIT:
                out[k] = -spread * reach * reach * metric.high[k]
            else:
                own = metric.inverses[entry + j * size + j] * rest * rest / metric.center[block, 1]
                out[k] = (own - metric.center[block, 0] * reach * reach) * metric.high[k]


@inner
def _block(  # noqa: PLR0917
    plan: Plan, metric: Metric, row: Floats, block: int, x: Floats, out: Floats
) -> None:
    """Write what one record adds to the conditions of a block."""
    start, end = plan.first_condition[block], plan.last_condition[block]
    base = plan.base[block]
    if base >= 0 and _value(plan.columns, base, row) == 0.0:
        for k in range(start, end):
            out[k] = 0.0
        return
    kind = plan.kind[block]
    first = plan.first_column[block]
    if kind in (LOGIT, LINEAR):
        _model(plan, metric, row, block, x, out)
    elif kind == TABLE:
        for k in range(start, end):
            out[k] = _value(plan.columns, first + k - start, row)
            if plan.share_of[k] >= 0:
                out[k] -= metric.low[k] * _value(plan.columns, plan.share_of[k], row)
    elif kind == MEANS:
        y = _value(plan.columns, plan.outcome[block], row)
        for k in range(start, end):
            inside = _value(plan.columns, first + k - start, row)
            out[k] = (y - metric.low[k]) if inside != 0.0 else 0.0
    elif kind == MEDIANS:
        y = _value(plan.columns, plan.outcome[block], row)
        for k in range(start, end, 2):
            inside = _value(plan.columns, first + (k - start) // 2, row)
            out[k] = 0.0
            out[k + 1] = 0.0
            if inside != 0.0:
                out[k] = 0.5 if y < metric.low[k] else -0.5
                out[k + 1] = 0.5 if y > metric.high[k] else -0.5
    else:
        zx = (_value(plan.columns, first, row) - metric.center[block, 0]) / metric.center[block, 1]
        zy = (_value(plan.columns, first + 1, row) - metric.center[block, 2]) / metric.center[block, 3]
        out[start] = zx * zy - 0.5 * metric.low[start] * (zx * zx + zy * zy)


@compiled
def contributions(file: Floats, plan: Plan, metric: Metric) -> Floats:
    """Compute what every record adds to every condition."""
    out = np.zeros((file.shape[0], len(plan.about)))
    x = np.empty(_widest(plan))
    for i in range(file.shape[0]):
        for block in range(len(plan.kind)):
            _block(plan, metric, file[i], block, x, out[i])
    return out


@inner
def _widest(plan: Plan) -> int:
    widest = 1
    for block in range(len(plan.kind)):
        widest = max(widest, plan.last_column[block] - plan.first_column[block])
    return widest


@compiled
def misfit(sums: Floats, plan: Plan, metric: Metric) -> float:
    """Return the score statistics of the models plus the squared, scaled sums of the other conditions."""
    total = 0.0
    for block in range(len(plan.kind)):
        total += _block_misfit(sums, plan, metric, block)
    return total


@inner
def _block_misfit(sums: Floats, plan: Plan, metric: Metric, block: int) -> float:
    total = 0.0
    start, end = plan.first_condition[block], plan.last_condition[block]
    kind = plan.kind[block]
    if kind in (LOGIT, LINEAR):
        size = plan.last_column[block] - plan.first_column[block]
        entry = plan.first_entry[block]
        quadratic = metric.slack[start] == 0.0
        for a in range(size):
            if not quadratic:
                error = 0.0
                for b in range(size):
                    error += metric.entries[entry + a * size + b] * sums[start + b]
                beyond = max(0.0, abs(error) - metric.slack[start + a])
                total += metric.importance[start + a] * beyond * beyond
                continue
            first = sums[start + a]
            if first == 0.0:
                continue
            inner = 0.5 * metric.entries[entry + a * size + a] * first
            for b in range(a):
                inner += metric.entries[entry + a * size + b] * sums[start + b]
            total += 2.0 * first * inner
        start += size
    for k in range(start, end):
        away = sums[k]
        if kind == MEDIANS:
            away = max(0.0, away + 0.5)
        elif metric.slack[k] > 0.0:
            away = max(0.0, abs(away) - metric.slack[k])
        total += metric.importance[k] * away * away
    return total


@compiled
def leverage(added: Floats, plan: Plan, metric: Metric) -> Floats:
    """Measure how much of the misfit could hang on each record."""
    out = np.zeros(added.shape[0])
    for i in range(added.shape[0]):
        out[i] = misfit(added[i], plan, metric)
    return out


@inner
def _redrawn(old: float, mover: int, moves: Moves, place: float, kind: float) -> float:
    """Draw a new value: another level, or a number nearby or anywhere in its band."""
    how = moves.redraw[mover]
    if how == LEVEL:
        return float(int(place * moves.levels[mover]))
    start, end = moves.band_start[mover], moves.band_start[mover + 1]
    low, high = moves.bands[start], moves.bands[end - 1]
    for edge in range(start, end - 1):
        if moves.bands[edge] <= old <= moves.bands[edge + 1]:
            low, high = moves.bands[edge], moves.bands[edge + 1]
            break
    if kind < 0.3:
        new = low + place * (high - low + (1.0 if how == WHOLE else 0.0))
        if how == WHOLE:
            new = np.floor(new)
    else:
        step = (2.0 * place - 1.0) * (high - low) * 10.0 ** (-6.0 * (kind - 0.3) / 0.7)
        if how == WHOLE:
            step = np.rint(step)
            if step == 0.0:
                step = 1.0 if place >= 0.5 else -1.0
        new = old + step
    return float(min(max(new, low), high))


@compiled
def search(  # noqa: PLR0917
    file: Floats,
    added: Floats,
    sums: Floats,
    plan: Plan,
    metric: Metric,
    moves: Moves,
    chance: Floats,
    bar: float,
) -> int:
    """Run some batches of proposals on a file, in place, and return how many changes were made.

    ``added`` is what `contributions` gives, ``sums`` the conditions as they stand; ``chance`` holds four uniform
    numbers a proposal. The best proposal of a batch is taken if it lowers the misfit by more than ``bar``; a negative
    bar lets it rise.
    """
    n = file.shape[0]
    size = len(plan.about)
    x = np.empty(_widest(plan))
    one, two = np.empty(file.shape[1]), np.empty(file.shape[1])
    new_one, new_two, trial = np.zeros(size), np.zeros(size), np.empty(size)
    own = np.empty(len(plan.kind))
    for block in range(len(plan.kind)):
        own[block] = _block_misfit(sums, plan, metric, block)
    made = 0
    for batch in range(chance.shape[0]):
        best, best_mover, best_one, best_two, best_value = -bar, -1, -1, -1, 0.0
        for proposal in range(chance.shape[1]):
            u = chance[batch, proposal]
            mover = int(u[0] * len(moves.movers))
            v = moves.movers[mover]
            is_swap = moves.redraw[mover] == FIXED or u[3] >= 0.5
            place = int(u[1] * n)
            if u[0] * len(moves.movers) - mover < 0.5:
                # What is left to mend mostly hangs on the few records of rare levels.
                place = moves.focus[mover, place]
            i = moves.order[mover, place]
            if is_swap:
                low, high = moves.group_low[mover, place], moves.group_high[mover, place]
                if u[2] < 0.5:
                    other = low + int(2.0 * u[2] * (high - low))
                else:
                    # Neighbors in the list are alike, so that little else changes: the small steps of the end.
                    other = place + int(float(high - low) ** (2.0 * u[2] - 1.0))
                    if other >= high:
                        other -= high - low
                j = moves.order[mover, other]
                if file[i, v] == file[j, v]:
                    continue
                agree = True
                for p in range(moves.partner_start[mover], moves.partner_start[mover + 1]):
                    if file[i, moves.partners[p]] != file[j, moves.partners[p]]:
                        agree = False
                        break
                if not agree:
                    continue
                value = file[j, v]
            else:
                j = -1
                value = _redrawn(file[i, v], mover, moves, u[2], 2.0 * u[3])
                if value == file[i, v]:
                    continue
            one[:] = file[i]
            one[v] = value
            if j >= 0:
                two[:] = file[j]
                two[v] = file[i, v]
            gain = 0.0
            for at in range(moves.block_start[mover], moves.block_start[mover + 1]):
                block = moves.blocks[at]
                _block(plan, metric, one, block, x, new_one)
                if j >= 0:
                    _block(plan, metric, two, block, x, new_two)
                for k in range(plan.first_condition[block], plan.last_condition[block]):
                    trial[k] = sums[k] + new_one[k] - added[i, k]
                    if j >= 0:
                        trial[k] += new_two[k] - added[j, k]
                gain += _block_misfit(trial, plan, metric, block) - own[block]
            if gain < best:
                best, best_mover, best_one, best_two, best_value = gain, mover, i, j, value
        if best_mover < 0:
            continue
        made += 1
        v = moves.movers[best_mover]
        old = file[best_one, v]
        file[best_one, v] = best_value
        if best_two >= 0:
            file[best_two, v] = old
        for at in range(moves.block_start[best_mover], moves.block_start[best_mover + 1]):
            block = moves.blocks[at]
            for i in (best_one, best_two):
                if i < 0:
                    continue
                _block(plan, metric, file[i], block, x, new_one)
                for k in range(plan.first_condition[block], plan.last_condition[block]):
                    sums[k] += new_one[k] - added[i, k]
                    added[i, k] = new_one[k]
            own[block] = _block_misfit(sums, plan, metric, block)
    return made


# Compiled fits of logistic and linear models; imported only when used.
_FAR = 30.0


@inner
def _solved(matrix: Floats, right: Floats) -> tuple[Floats, bool]:
    """Solve a symmetric positive definite system by Cholesky, scaled so that units do not matter."""
    size = len(right)
    scale = np.empty(size)
    for i in range(size):
        if matrix[i, i] <= 0.0:
            return right, False
        scale[i] = 1.0 / np.sqrt(matrix[i, i])
    root = np.zeros((size, size))
    for i in range(size):
        for j in range(i + 1):
            total = matrix[i, j] * scale[i] * scale[j]
            for m in range(j):
                total -= root[i, m] * root[j, m]
            if i == j:
                if total < 1e-11:
                    return right, False
                root[i, i] = np.sqrt(total)
            else:
                root[i, j] = total / root[j, j]
    found = right * scale
    for i in range(size):
        for m in range(i):
            found[i] -= root[i, m] * found[m]
        found[i] /= root[i, i]
    for i in range(size - 1, -1, -1):
        for m in range(i + 1, size):
            found[i] -= root[m, i] * found[m]
        found[i] /= root[i, i]
    return found * scale, True


@inner
def _usable(x: Floats, y: Floats, separable: bool) -> tuple[Flags, Flags]:
    """Find the columns that have an estimate and the records that inform the others.

    A dummy without records has none. A dummy whose records share one outcome would run to infinity; leaving out
    its records gives what the other coefficients tend to.
    """
    n, size = x.shape
    columns = np.ones(size, dtype=np.bool_)
    rows = np.ones(n, dtype=np.bool_)
    again = True
    while again:
        again = False
        for j in range(size):
            if not columns[j]:
                continue
            there, events, is_dummy = 0.0, 0.0, True
            for i in range(n):
                if rows[i] and x[i, j] != 0.0:
                    there += 1.0
                    events += y[i]
                    if x[i, j] != 1.0:
                        is_dummy = False
            alike = separable and is_dummy and events in (0.0, there)
            if there == 0.0 or alike:
                columns[j] = False
                again = True
                if there > 0.0:
                    for i in range(n):
                        if x[i, j] != 0.0:
                            rows[i] = False
    return columns, rows


@compiled
def logit(x: Floats, y: Floats, start: Floats, most: int) -> tuple[Floats, bool]:
    """Fit a logistic model by iteratively reweighted least squares, from a given start; NaN where there is none."""
    n, size = x.shape
    columns, rows = _usable(x, y, True)
    there = np.flatnonzero(columns)
    answer = np.full(size, np.nan)
    k = len(there)
    if k == 0:
        return answer, False
    beta = np.zeros(k)
    for a in range(k):
        beta[a] = start[there[a]] if np.isfinite(start[there[a]]) else 0.0
    hessian = np.empty((k, k))
    score = np.empty(k)
    row = np.empty(k)
    last = -np.inf
    for _ in range(most):
        hessian[:] = 0.0
        score[:] = 0.0
        likelihood, farthest = 0.0, 0.0
        for i in range(n):
            if not rows[i]:
                continue
            eta = 0.0
            for a in range(k):
                row[a] = x[i, there[a]]
                eta += row[a] * beta[a]
            farthest = max(farthest, abs(eta))
            away = np.exp(-abs(eta))
            chance = 1.0 / (1.0 + away) if eta >= 0.0 else away / (1.0 + away)
            likelihood += y[i] * eta - max(eta, 0.0) - np.log1p(away)
            spread = chance * (1.0 - chance)
            for a in range(k):
                if row[a] == 0.0:
                    continue
                score[a] += row[a] * (y[i] - chance)
                weighted = row[a] * spread
                for b in range(a + 1):
                    hessian[a, b] += weighted * row[b]
        for a in range(k):
            for b in range(a):
                hessian[b, a] = hessian[a, b]
        if likelihood < last - 1e-6 * abs(last):
            # A warm start can overshoot; begin again from zero, from where the iterations are tame.
            beta[:] = 0.0
            last = -np.inf
            continue
        last = likelihood
        step, solvable = _solved(hessian, score)
        if not solvable:
            return answer, False
        beta += step
        gain = 0.0
        for a in range(k):
            gain += step[a] * score[a]
        if gain < 1e-14 * n:
            # Separated data fit ever better while the chances run to 0 and 1.
            if farthest > _FAR and likelihood > -1e-6 * n:
                return answer, False
            for a in range(k):
                answer[there[a]] = beta[a]
            return answer, True
    return answer, False


@compiled
def least_squares(x: Floats, y: Floats) -> tuple[Floats, bool]:
    """Fit a linear model; NaN where a column has no records."""
    n, size = x.shape
    columns, _ = _usable(x, y, False)
    there = np.flatnonzero(columns)
    answer = np.full(size, np.nan)
    k = len(there)
    if k == 0 or n <= k:
        return answer, False
    beta = np.zeros(k)
    cross = np.zeros((k, k))
    right = np.zeros(k)
    # The second round solves for the residuals of the first, which wins back digits lost in the cross-products.
    for turn in range(2):
        right[:] = 0.0
        for i in range(n):
            rest = y[i]
            for a in range(k):
                rest -= x[i, there[a]] * beta[a]
            for a in range(k):
                value = x[i, there[a]]
                if value == 0.0:
                    continue
                right[a] += value * rest
                if turn == 0:
                    for b in range(k):
                        cross[a, b] += value * x[i, there[b]]
        step, solvable = _solved(cross, right)
        if not solvable:
            return answer, False
        beta += step
    for a in range(k):
        answer[there[a]] = beta[a]
    return answer, True
