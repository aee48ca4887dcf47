"""Sites for tests: in this process, reached by the bytes that would travel, or as services of their own over HTTPS."""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import sys
import time

from discreet.federated.remote_transport import RemoteTransport
from discreet.federated.site_rules import SiteFile
from discreet.federated.sites import Site


class SitesHere(RemoteTransport):
    """Sites in this process, reached by the bytes that would travel."""

    def __init__(self, folder, names):
        self.sites = {name: Site(SiteFile.read(folder / f"{name}.toml")) for name in names}
        self.passed = []
        super().__init__(list(names))

    def _post(self, site, data, ended):
        for run in ended:
            self.sites[site].forget(run)
        self.passed.append((site, data))
        return self.sites[site].answer(data, "analyst")


def free_port(many):
    """Find neighboring ports below those that the system gives to outgoing connections, so that nobody takes them."""
    draw = random.SystemRandom()
    for _ in range(200):
        first = draw.randrange(15_000, 32_000)
        if all(_free(first + at) for at in range(many)):
            return first
    raise AssertionError("no free ports")


def _free(port):
    with socket.socket() as one:
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class Running:
    """Sites in processes of their own, as their owners would start them."""

    def __init__(self, folder, *names):
        self.folder, self.processes = folder, {}
        self.start(*names)

    def start(self, *names):
        for name in names:
            with (self.folder / f"{name}.err").open("a") as said:
                self.processes[name] = subprocess.Popen(
                    [sys.executable, "-m", "discreet", "federated", "serve", str(self.folder / f"{name}.toml")],
                    stdout=said, stderr=said,
                )  # fmt: skip
        for name in names:
            self.wait(name)

    def wait(self, name):
        """Wait until a site listens or has ended; how long that takes is a matter of the machine."""
        port = SiteFile.read(self.folder / f"{name}.toml").port
        while self.processes[name].poll() is None:
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.1)
        raise AssertionError((self.folder / f"{name}.err").read_text())

    def kill(self, name):
        self.processes[name].send_signal(signal.SIGKILL)
        self.processes[name].wait()

    def close(self):
        for process in self.processes.values():
            if process.poll() is None:
                process.terminate()
                process.wait()
