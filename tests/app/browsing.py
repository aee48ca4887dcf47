"""A real browser at the page: started without a window, driven by selenium; and what it must find readable.

axe-core judges every page where it was fetched (``make axe``, or DISCREET_AXE names the file). The checks that matter
most are also written out, for where it was not: every control has a name, texts stand out as WCAG AA asks, headings go
down one level at a time, there is one main landmark and one first heading, every picture and table is named, ids are
used once, and nothing sticks out of a narrow screen.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
CHECKS = (Path(__file__).parent / "readable.js").read_text(encoding="utf-8")
_AXE = Path(os.environ.get("DISCREET_AXE") or Path(sys.prefix) / "axe" / "package" / "axe.min.js")
AXE = _AXE.read_text(encoding="utf-8") if _AXE.is_file() else None
_PLAIN = (
    "--headless=new",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
WITHOUT = "no chromium with chromedriver on this machine (Debian: apt-get install chromium chromium-driver)"


class Page:
    """A running page and a browser that has entered it."""

    def __init__(self, folder: Path, width: int = 1280, *, dark: bool = False) -> None:
        selenium = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
        self.log = folder / "server.log"
        with self.log.open("w") as log:
            # The library behind the page looks for signs of a test, and must see none: this is the real thing.
            plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
            self.server = subprocess.Popen(
                [sys.executable, "-m", "discreet", "app", "--no-browser"],
                stdout=log,
                stderr=log,
                cwd=folder,
                env=plain,
            )
        options = selenium.ChromeOptions()
        options.binary_location = CHROMIUM
        # A browser that asks nobody anything but the page, and remembers nothing of an earlier test.
        for argument in (*_PLAIN, f"--user-data-dir={folder / 'browser'}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.browser = selenium.Chrome(options=options, service=selenium.ChromeService(DRIVER))
        self.browser.set_script_timeout(120)  # also on a machine that is busy with other things
        self.width = width
        self.actions = 0  # what a person has done: buttons, fields, choices
        self._tall(900)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        self.browser.get(self._address())
        self.wait(lambda: self.sees("Which file is to be released?"))

    def _address(self) -> str:
        for _ in range(600):
            found = re.findall(r"http://\S+/enter/\S+", self.log.read_text())
            if found:
                return found[-1]
            time.sleep(0.2)
        raise AssertionError(self.log.read_text())

    def close(self) -> None:
        self.browser.quit()
        self.server.terminate()
        self.server.wait(timeout=30)

    def wait(self, until, seconds: float = 400) -> None:
        for _ in range(int(seconds / 0.2)):
            if until():
                return
            time.sleep(0.2)
        self.shot(Path("/tmp"), "browser-test-stuck")
        raise AssertionError(f"not seen in time; the page says: {self.text()[:1500]}")

    def text(self) -> str:
        return self.browser.execute_script("return document.body.innerText") or ""

    def sees(self, text: str) -> bool:
        return text in self.text()

    def script(self, code: str, *given):
        return self.browser.execute_script(code, *given)

    def click(self, text: str, among: str = "button, a, .q-item, .q-expansion-item .q-item") -> None:
        """Press a button or a link by what it says."""

        def pressed() -> bool:
            return self.script(
                "const [wanted, among] = arguments, all = [...document.querySelectorAll(among)];"
                "const says = (e) => e.innerText.trim().split('\\n')[0] === wanted;"
                "const one = all.find((e) => says(e) && e.offsetParent !== null && !e.disabled);"
                "if (one) { one.scrollIntoView({block: 'center'}); one.click(); } return !!one;",
                text,
                among,
            )

        self.wait(pressed, 60)
        self.actions += 1
        time.sleep(0.4)

    def type(self, label: str, text: str) -> None:
        """Fill in a field by its label, as with a keyboard."""
        from selenium.webdriver.common.by import By
        from selenium.webdriver.common.keys import Keys

        def field():
            for element in self.browser.find_elements(By.CSS_SELECTOR, "input, textarea"):
                name = element.accessible_name
                if name == label and element.is_displayed():
                    return element
            return None

        self.wait(lambda: field() is not None, 60)
        found = field()
        found.send_keys(Keys.CONTROL, "a")
        found.send_keys(Keys.DELETE)
        found.send_keys(text)
        self.actions += 1
        time.sleep(0.3)

    def drop(self, file: Path, *, place: int = 0) -> None:
        """Hand a file over, as by the dialog of the browser; ``place`` counts the fields for files."""
        from selenium.webdriver.common.by import By

        def fields():
            return self.browser.find_elements(By.CSS_SELECTOR, "input[type=file]")

        self.wait(lambda: len(fields()) > place, 60)
        fields()[place].send_keys(str(file))
        self.actions += 1

    def press(self, *keys: str) -> None:
        """Press keys, wherever the keyboard is."""
        from selenium.webdriver.common.action_chains import ActionChains

        for key in keys:
            ActionChains(self.browser).send_keys(key).perform()

    def tab_to(self, name: str, most: int = 150) -> None:
        """Go on with the Tab key until what bears a name has the keyboard, and can be seen to have it."""
        from selenium.webdriver.common.keys import Keys

        for _ in range(most):
            self.press(Keys.TAB)
            held = self.browser.switch_to.active_element
            if held.accessible_name.strip() == name:
                shown = self.script(
                    "const style = getComputedStyle(arguments[0]), field = arguments[0].closest('.q-field');"
                    "return style.outlineStyle !== 'none' || style.boxShadow !== 'none'"
                    " || (field && field.classList.contains('q-field--focused'))",
                    held,
                )
                assert shown, f"nobody sees that the keyboard is at {name}"
                return
        raise AssertionError(f"the Tab key does not lead to {name}")

    def choose(self, label: str, option: str) -> None:
        """Choose from a list by its label, as with a mouse."""
        from selenium.webdriver.common.by import By

        def boxes():
            found = self.browser.find_elements(By.CSS_SELECTOR, "[role=combobox]")
            return [element for element in found if element.accessible_name.startswith(label)]

        # A list that is closing still shows its options for a moment, and no longer takes one.
        self.wait(lambda: not self.script("return !!document.querySelector('.q-menu')"), 20)
        self.wait(lambda: bool(boxes()), 60)
        self.script("arguments[0].scrollIntoView({block: 'center'}); arguments[0].click()", boxes()[0])
        self.click(option, among=".q-menu .q-item")

    def idle(self, seconds: float = 500) -> None:
        """Wait until no job runs."""
        time.sleep(1.2)
        self.wait(lambda: not self.script("return !!document.querySelector('.job, .waiting')"), seconds)
        time.sleep(0.6)

    def go(self, page: str) -> None:
        number = re.search(r"/(\d+)/\w+", self.browser.current_url)[1]
        root = self.browser.current_url.split("/", 3)
        self.browser.get(f"{root[0]}//{root[2]}/{number}/{page}")
        self.wait(lambda: self.script("return !!document.querySelector('h1')"), 60)

    def shot(self, folder: Path, name: str, *, most: int = 4000) -> Path:
        """Keep a picture of the page from top to bottom."""
        self.script("window.scrollTo(0, 0)")
        self._tall(700)
        self._tall(min(most, max(700, self.script("return document.documentElement.scrollHeight"))))
        place = folder / f"{name}.png"
        self.browser.save_screenshot(str(place))
        return place

    def _tall(self, height: int) -> None:
        sizes = {"width": self.width, "height": height, "deviceScaleFactor": 1, "mobile": self.width < 600}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", sizes)
        time.sleep(0.4)

    def faults(self) -> list[str]:
        """Return what would keep somebody from reading or using the page as it is now."""
        found = [*self.script(CHECKS), *self._nameless(), *self._violations()]
        wide = self.script(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        if wide > 1:
            found.append(f"the page is {wide} px wider than the screen")
        return found

    def _violations(self) -> list[str]:
        """Return what axe-core objects to, where it is there."""
        if AXE is None:
            return []
        self.script(AXE)
        return self.browser.execute_async_script(
            "const done = arguments[arguments.length - 1]; axe.run().then((r) => done(r.violations.map("
            "(v) => 'axe ' + v.id + ': ' + v.nodes.map((n) => n.html.slice(0, 120)).slice(0, 3).join(' | '))))"
        )

    def _nameless(self) -> list[str]:
        tree = self.browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        controls = ("button", "link", "textbox", "combobox", "checkbox", "radio", "spinbutton", "searchbox", "img",
                    "progressbar", "region", "navigation", "dialog")  # fmt: skip
        return [
            f"a {node['role']['value']} has no name"
            for node in tree
            if not node.get("ignored")
            and node.get("role", {}).get("value") in controls
            and not node.get("name", {}).get("value")
        ]

    def readable(self, pictures: Path, name: str) -> None:
        """Keep a picture; nothing may hinder a reader, and the browser may have nothing to complain about."""
        self.shot(pictures, f"{self.width}-{name}")
        assert not self.faults(), name
        assert not self.complaints(), name

    def complaints(self) -> list[str]:
        """Return what the browser complained about, such as scripts that the policy kept from running."""
        return [entry["message"] for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"]
