"""Look at a file before it is synthesized: what would silently ruin the synthetic one?"""

from discreet.synth.preflighting.findings import Finding
from discreet.synth.preflighting.inspecting import preflight
from discreet.synth.preflighting.linked_tables import LinkedPreflight, preflight_linked
from discreet.synth.preflighting.result import Preflight

__all__ = ["Finding", "LinkedPreflight", "Preflight", "preflight", "preflight_linked"]
