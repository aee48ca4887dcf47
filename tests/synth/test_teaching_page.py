"""The page on teaching data shows what its code prints."""

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "teaching-data-from-published-results.md"


def test_what_the_page_on_teaching_data_shows_is_what_its_code_prints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for code, shown in re.findall(
        r"```python\n((?:(?!```).)*)```(?:\n\n```text\n((?:(?!```).)*)```)?",
        PAGE.read_text(encoding="utf-8"),
        re.DOTALL,
    ):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        assert printed.getvalue().split() == shown.split()
