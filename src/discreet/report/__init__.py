"""What a person reads: the HTML reports of assessments, comparisons and releases, and the pictures of their measures.

A report is one file that needs nothing else: no network, no fonts, no scripts from elsewhere.
"""

from discreet.report.comparison_page import render_comparison, write_comparison
from discreet.report.page import render_assessment, write_assessment
from discreet.report.plots import draw, svg
from discreet.report.release_page import render_release, write_release

__all__ = [
    "draw",
    "render_assessment",
    "render_comparison",
    "render_release",
    "svg",
    "write_assessment",
    "write_comparison",
    "write_release",
]
