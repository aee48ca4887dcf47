"""Look at a file before it is synthesized: what would silently ruin the synthetic one?"""

from discreet.synth.preflighting.preflight_checks import LinkedPreflight, preflight, preflight_linked
from discreet.synth.preflighting.preflight_findings import Finding
from discreet.synth.preflighting.preflight_result import Preflight

__all__ = ["Finding", "LinkedPreflight", "Preflight", "preflight", "preflight_linked"]
