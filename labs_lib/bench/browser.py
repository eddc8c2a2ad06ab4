"""A notebook in a real JupyterLab in a headless Chromium, for benches and for tests.

The server's folders are temporary, nothing of the user's own Jupyter is read or written, and what
the page asks off this machine is recorded.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import nbformat

from labs_lib.bench.rows import Unavailable
from labs_lib.workbook.start import environment

START_S = 60.0
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --force-color-profile=srgb"
)
_READY = """async () => { const panel = window.jupyterapp.shell.currentWidget;
  await panel.context.ready; await panel.context.sessionContext.ready; await panel.revealed; }"""
_RUN = "async () => { await window.jupyterapp.commands.execute('notebook:run-all-cells'); }"
_SCROLL = "async i => { await window.jupyterapp.shell.currentWidget.content.scrollToItem(i); }"
_PYTHON = """async code => { let out = ''; const panel = window.jupyterapp.shell.currentWidget;
  const f = panel.context.sessionContext.session.kernel.requestExecute({code});
  f.onIOPub = m => out += m.content.text ?? (m.content.ename ? 'ERROR ' + m.content.evalue : '');
  await f.done; return out; }"""
_ARM = """(target, what) => { window.labsTime = new Promise((done, fail) => {
  let pressed; const late = setTimeout(fail, 20000, Error('no redraw within 20 s'));
  addEventListener('keydown', () => pressed = performance.now(), {capture: true, once: true});
  new MutationObserver((_, seen) => { seen.disconnect(); clearTimeout(late);
    requestAnimationFrame(() => done(performance.now() - pressed)); })
    .observe(target, {attributeFilter: [what]}); }); }"""


def missing() -> str:
    """Why no browser can be driven here, in one sentence; empty where one can."""
    if find_spec("playwright") is None:
        return "playwright is not installed (`pip install playwright`)"
    if _program() is None:
        return "no Chromium is installed (`apt install chromium`)"
    return ""


@contextmanager
def served(folder: Path) -> Generator[str]:
    """A JupyterLab server on `folder`, for as long as the block lasts; gives its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += ["--expose-app-in-browser", f"--port={port}", "--ServerApp.ip=127.0.0.1"]
    command += ["--ServerApp.port_retries=0", "--IdentityProvider.token="]
    command += [f"--ServerApp.root_dir={folder}", "--LabApp.extension_manager=readonly"]
    command += ["--LanguageServerManager.autodetect=False"]
    with open(folder / "lab.log", "w", encoding="utf-8") as log:
        server = subprocess.Popen(
            command, env=_environment(folder), stdout=log, stderr=log, start_new_session=True
        )
        try:
            address = f"http://127.0.0.1:{port}"
            _wait_for(f"{address}/api/status", server, folder / "lab.log")
            yield address
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait(20)


@contextmanager
def browsing() -> Generator[Any]:
    """A headless Chromium. Raises: Unavailable."""
    if missing():
        raise Unavailable(f"it needs a browser: {missing()}.")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_program(), args=OPTIONS.split())
        try:
            yield browser
        finally:
            browser.close()


class Notebook:
    """A page with one notebook in JupyterLab, made of `cells`, or as it lies in the folder.

    `errors` and `strays` hold what went wrong: what the console complained of, and the addresses
    off this machine that were asked.
    """

    def __init__(
        self,
        browser: Any,
        address: str,
        folder: Path,
        name: str,
        cells: Sequence[str] | None = None,
    ) -> None:
        if cells is not None:
            made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
            made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
            nbformat.write(made, folder / name)
        self.errors: list[str] = []
        self.strays: list[str] = []
        self.page = browser.new_page(viewport={"width": 1000, "height": 900})
        self.page.on("request", lambda request: self._asked(request.url))
        self.page.on("websocket", lambda wire: self._asked(wire.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._logged)
        self.page.goto(f"{address}/lab/tree/{quote(name)}?reset")
        self.page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=60_000)
        self.page.evaluate("window.jupyterapp.shell.collapseLeft()")
        self.page.evaluate(_READY)

    def run(self) -> None:
        """Run all cells, and wait until they are done."""
        self.page.evaluate(_RUN)

    def python(self, code: str) -> str:
        """What the kernel prints for `code`."""
        return self.page.evaluate(_PYTHON, code)

    def command(self, name: str, arguments: dict | None = None) -> None:
        """Run one of JupyterLab's own commands."""
        call = "([name, args]) => window.jupyterapp.commands.execute(name, args)"
        self.page.evaluate(call, [name, arguments or {}])

    def explorer(self, cell: int = 0) -> Any:
        """The explorer below the code cell of that number, scrolled into view."""
        self.page.evaluate(_SCROLL, cell)
        index = f'[data-windowed-list-index="{cell}"]'
        shown = self.page.locator(f".jp-CodeCell{index} .labs-explorer")
        shown.locator("canvas[data-rev]").wait_for(timeout=60_000)
        shown.scroll_into_view_if_needed()
        return shown

    def pressed(self, picture: Any, key: str, what: str = "data-rev") -> float:
        """Milliseconds from a key to the frame after the picture changed, as an attribute says."""
        picture.evaluate(_ARM, what)
        self.page.keyboard.press(key)
        return self.page.evaluate("window.labsTime")

    def _asked(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname != "127.0.0.1":
            self.strays.append(url)

    def _logged(self, message: Any) -> None:
        if message.type == "error":
            self.errors.append(f"{message.text} ({message.location.get('url', '')})")


def _program() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def _environment(folder: Path) -> dict[str, str]:
    """As `labs start` has it, with folders of its own and nothing kept for the student."""
    env = environment(folder / ".jupyter")
    kept = {name: value for name, value in env.items() if not name.startswith("LABS_")}
    return kept | {"LABS_STATE": str(folder / ".labs")}


def _wait_for(url: str, server: subprocess.Popen, log: Path) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end and server.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except OSError:
            time.sleep(0.1)
    raise Unavailable(f"JupyterLab did not start:\n{log.read_text(encoding='utf-8')[-800:]}")
