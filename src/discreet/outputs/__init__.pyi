from discreet.outputs.acro import read_acro as read_acro
from discreet.outputs.acro import write_acro as write_acro
from discreet.outputs.check_results import Barn as Barn
from discreet.outputs.check_results import CheckResult as CheckResult
from discreet.outputs.check_results import Finding as Finding
from discreet.outputs.check_results import Place as Place
from discreet.outputs.check_results import StatbarnInfo as StatbarnInfo
from discreet.outputs.check_results import barns as barns
from discreet.outputs.check_results import classify as classify
from discreet.outputs.check_results import registry as registry
from discreet.outputs.decisions import (
    append_decision as append_decision,
)
from discreet.outputs.decisions import (
    read_decisions as read_decisions,
)
from discreet.outputs.decisions import (
    verify_register as verify_register,
)
from discreet.outputs.finished_files import check as check
from discreet.outputs.finished_files import check_many as check_many
from discreet.outputs.output import Output as Output
from discreet.outputs.output_policy import OutputPolicy as OutputPolicy
from discreet.outputs.package import Package as Package
from discreet.outputs.register import OutputRegister as OutputRegister
from discreet.outputs.reviewing import Reviewer as Reviewer
from discreet.outputs.reviewing import review as review
from discreet.outputs.session import Session as Session
