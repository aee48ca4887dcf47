"""``evaluate``: generators on data sets, repeated, measured, kept, and put together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from discreet.core.errors import ParameterError
from discreet.core.files.atomic import make_folder
from discreet.core.progress import track
from discreet.workflow.evaluation.result import Evaluation
from discreet.workflow.evaluation.study import Study
from discreet.workflow.evaluation.study_cells import Ledger, cells_of
from discreet.workflow.evaluation.workers import Limits, run

RESULTS = "results.jsonl"


def evaluate(
    study: Study | str | Path,
    *,
    out: str | Path | None = None,
    workers: int = 1,
    resume: bool = True,
    retry: bool = False,
    progress: bool = True,
    seed: int | None = None,
) -> Evaluation:
    """Which generator keeps the data usable, and which gives people away?

    Every generator of the study is fitted to the training part of every data set, once for each seed; its synthetic
    files are compared with the training part (utility), models learned from them are tested on the hold-out, and risk
    is held against what the hold-out shows by mere chance. A generator that fails, or takes too long, is a result too:
    the reason is written down and the others go on.

    Parameters
    ----------
    study
        A `Study`, or the path of a study file (TOML).
    out
        A folder for the results (made where it is not there): ``results.jsonl``, one line a cell, ``study.toml`` and,
        where the study keeps them, the synthetic files. Nothing is kept without it.
    workers
        Number of processes. The figures do not depend on it. A script that uses more than one runs this under
        ``if __name__ == "__main__":``.
    resume
        Take what is in ``out`` already. A cell counts as done when data, generator, seed and metric are the same; of a
        cell with new metrics only these are measured. False starts afresh.
    retry
        With ``resume``: run again what has failed.
    progress
        Show a progress bar on a terminal.
    seed
        Goes before the study's own seed.

    Returns
    -------
    Evaluation
        With ``table()``, ``ranks()``, ``failures``, ``plot()``, ``to_html(path)`` and ``to_dict()``.

    How to read it
    --------------
    Look at one layer at a time: global utility, fitness for purpose, the models you named, risk. There is no total
    score, for what one gains by copying records one loses in risk. The row ``holdout`` shows what a perfect generator
    could reach: real people who were not used. A generator that beats it in utility has copied.

    When not to trust it
    --------------------
    Differences between generators that are not large beside their standard deviations over seeds are chance. Defaults
    are compared with defaults: a tuned generator may do better. Files that other tools made count as if they had been
    made from the training part; nobody can check that here.

    Examples
    --------
    >>> from discreet.synth import Sequential
    >>> from discreet.workflow.evaluation import DataSet
    >>> study = Study(
    ...     data=[DataSet("adult", rows=400, columns=["age", "sex", "income"])],
    ...     generators={"margins": Sequential(method="sample")},
    ...     metrics=["margins"],
    ... )
    >>> found = evaluate(study)
    >>> found.table()["generator"].unique(maintain_order=True).to_list()
    ['holdout', 'margins']
    """
    chosen = Study.load(study) if isinstance(study, str | Path) else study
    if not isinstance(chosen, Study):
        raise ParameterError(f"study must be a Study or the path of one, not {type(study).__name__}.")
    if seed is not None:
        chosen = replace(chosen, seed=seed)
    folder = None if out is None else Path(out)
    if chosen.keep_files and folder is None:
        raise ParameterError("The study keeps its synthetic files: say where with out.")
    keep = folder / "synthetic" if folder is not None and chosen.keep_files else None
    # The data sets are read first, so that a study of files that are not there leaves no folder behind.
    cells = cells_of(chosen, keep=keep)
    if folder is not None:
        make_folder(folder)
        chosen.save(folder / "study.toml", overwrite=True)
        if not resume:
            (folder / RESULTS).unlink(missing_ok=True)
    ledger = Ledger(None if folder is None else folder / RESULTS)
    todo = []
    for cell in cells:
        metrics = ledger.open_metrics(cell, retry=retry)
        if metrics is not None:
            todo.append(replace(cell, metrics=metrics))
    limits = Limits(chosen.time_limit, chosen.memory_limit)
    for record in track(run(todo, workers, limits), len(todo), "Evaluating", progress=progress):
        ledger.add(record)
    results = [ledger.result(cell) for cell in cells]
    return Evaluation(chosen, tuple(result for result in results if result is not None))
