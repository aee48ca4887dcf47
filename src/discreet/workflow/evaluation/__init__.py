"""The studies of the literature as one call: generators x data sets x seeds, all metrics, resumable and parallel."""

from discreet.workflow.evaluation.evaluating import evaluate
from discreet.workflow.evaluation.evaluation_result import Evaluation
from discreet.workflow.evaluation.ready_studies import benchmark, released_study
from discreet.workflow.evaluation.study import Study
from discreet.workflow.evaluation.study_data import DataSet
from discreet.workflow.evaluation.study_generators import Generator
from discreet.workflow.evaluation.study_metrics import Metric, Model, usual_metrics

__all__ = [
    "DataSet",
    "Evaluation",
    "Generator",
    "Metric",
    "Model",
    "Study",
    "benchmark",
    "evaluate",
    "released_study",
    "usual_metrics",
]
