from discreet.workflow.assessment import assess as assess
from discreet.workflow.comparison import compare as compare
from discreet.workflow.inspection import inspect as inspect
from discreet.workflow.plan_search import plan_grid as plan_grid
from discreet.workflow.plan_search import search as search
from discreet.workflow.policy_judgment import judge as judge
from discreet.workflow.suggestion import suggest as suggest
from discreet.workflow.suggestion_result import Suggestion as Suggestion
from discreet.workflow.treatment_report import (
    ReleaseReport as ReleaseReport,
)
from discreet.workflow.treatment_report import (
    document_plan as document_plan,
)
from discreet.workflow.treatment_report import (
    document_release as document_release,
)
