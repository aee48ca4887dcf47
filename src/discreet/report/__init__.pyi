from discreet.report.assessment_report import render_assessment as render_assessment
from discreet.report.assessment_report import write_assessment as write_assessment
from discreet.report.comparison_report import render_comparison as render_comparison
from discreet.report.comparison_report import write_comparison as write_comparison
from discreet.report.plots import draw as draw
from discreet.report.plots import svg as svg
from discreet.report.release_report import render_release as render_release
from discreet.report.release_report import write_release as write_release
