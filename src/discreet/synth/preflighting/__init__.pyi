from discreet.synth.preflighting.preflight_checks import LinkedPreflight as LinkedPreflight
from discreet.synth.preflighting.preflight_checks import preflight as preflight
from discreet.synth.preflighting.preflight_checks import preflight_linked as preflight_linked
from discreet.synth.preflighting.preflight_findings import Finding as Finding
from discreet.synth.preflighting.preflight_result import Preflight as Preflight
