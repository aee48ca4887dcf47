"""What a person reads: the HTML report of an assessment and the pictures of its measures.

The report is one file that needs nothing else: no network, no fonts, no scripts from elsewhere.
"""

from discreet.report.page import render_assessment, write_assessment
from discreet.report.plots import draw, svg

__all__ = ["draw", "render_assessment", "svg", "write_assessment"]
