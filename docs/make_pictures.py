"""Cut the pictures of the tutorial from those that the browser tests have taken of the page as it is now.

DISCREET_SCREENSHOTS=shots python -m pytest -m slow tests/app/test_browser.py tests/app/test_browser_jobs.py
python docs/make_pictures.py shots
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image

# The picture of a test, and from where to where it is shown, in pixels from the top; 0 is its end.
CUTS = {
    "page-first": ("1280-first", 0, 0),
    "page-file": ("1280-job-messy-1-file", 0, 600),
    "page-columns": ("1280-job-messy-2-columns", 0, 1340),
    "page-risk": ("1280-job-messy-3-risk", 0, 1180),
    "page-protect": ("1280-job-messy-4-suggested", 0, 1870),
    "page-steps": ("1280-job-messy-5-plan", 2110, 2530),
    "page-compare": ("1280-job-messy-6-compare", 0, 1450),
    "page-release": ("1280-job-messy-8-written", 465, 1350),
    "page-tables": ("1280-job-table-3-protected", 1160, 2130),
    "page-outputs": ("1280-job-outputs-2-shown", 530, 2080),
}
COLORS, WIDTH = 256, 960


def main(shots: Path) -> None:
    """Write every picture into the folder of the manual's images."""
    for name, (source, top, bottom) in CUTS.items():
        with Image.open(shots / f"{source}.png") as taken:
            shown = taken.convert("RGB").crop((0, top, taken.width, bottom or taken.height))
        smaller = shown.resize((WIDTH, round(shown.height * WIDTH / shown.width)), Image.Resampling.LANCZOS)
        few = smaller.quantize(COLORS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        few.save(Path(__file__).parent / "images" / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
