"""A site in a process of its own on this machine: frames come on stdin, answers go to stdout."""

from __future__ import annotations

import sys

from discreet.core.errors import DiscreetError
from discreet.federated.remote_transport import read_frame, write_frame
from discreet.federated.site_rules import SiteFile
from discreet.federated.sites import Site, opened_site


def main() -> None:
    """Answer until nobody asks any more."""
    with opened_site(SiteFile.read(sys.argv[1]), networked=False) as site:
        _answer(site, sys.argv[2])


def _answer(site: Site, analyst: str) -> None:
    asking, answering = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            ended, data = read_frame(asking).decode(), read_frame(asking)
        except EOFError:
            return
        for run in filter(None, ended.split(",")):
            site.forget(run)
        try:
            answer = site.answer(data, analyst)
        except DiscreetError as error:
            write_frame(answering, b"refused")
            write_frame(answering, str(error).encode())
        else:
            write_frame(answering, b"ok")
            write_frame(answering, answer)


if __name__ == "__main__":
    main()
