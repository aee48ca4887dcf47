"""Run the command line in this process; starting Python anew for each case would take a second."""

import sys
import warnings

import pytest

from discreet.cli import main


class Done:
    """What a command printed and how it ended."""

    def __init__(self, returncode, stdout, stderr):
        self.returncode, self.stdout, self.stderr = returncode, stdout, stderr


@pytest.fixture
def discreet(monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["discreet", *map(str, arguments)])
        monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
        capsys.readouterr()
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            try:
                main()
                code = 0
            except SystemExit as end:
                code = end.code or 0
        printed = capsys.readouterr()
        return Done(code, printed.out, printed.err)

    return run
