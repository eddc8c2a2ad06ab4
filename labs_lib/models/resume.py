"""Go on with a wheel that was fetched in part: `python -m labs_lib.models.resume NAME VERSION PART`

pip starts every download over, so the rest is asked for here, through pip's own session: the
user's index, proxy, certificates and passwords. PART is the file so far, with the wheel's name.
Anything that doesn't work is no harm: the exit status says so, and the whole wheel is fetched.
"""

from __future__ import annotations

import sys
from pathlib import Path

CHUNK = 2**16
PARTIAL = 206


def main(arguments: list[str]) -> int:
    """Add to PART what it lacks; return 0 where the server gave it, 1 where it gave none of it."""
    name, version, part = arguments[0], arguments[1], Path(arguments[2])
    done = part.stat().st_size
    session, url = _session_and_url(name, version, part.name)
    headers = {"Range": f"bytes={done}-", "Accept-Encoding": "identity"}
    with session.get(url, headers=headers, stream=True) as answer:
        if answer.status_code != PARTIAL or not _begins_at(answer, done):
            return 1
        with open(part, "ab") as file:
            for chunk in answer.iter_content(CHUNK):
                file.write(chunk)
                file.flush()  # the size is how far it has come
    return 0


def _begins_at(answer, done: int) -> bool:
    return answer.headers.get("Content-Range", "").startswith(f"bytes {done}-")


def _session_and_url(name: str, version: str, wheel: str):
    """The session in which pip would fetch a wheel, and the wheel's address in its index."""
    from pip._internal.commands.download import DownloadCommand

    command = DownloadCommand("download", "")
    options, _ = command.parse_args(["--no-input", "--no-cache-dir", f"{name}=={version}"])
    session = command._build_session(options)
    finder = command._build_package_finder(options=options, session=session)
    for candidate in finder.find_all_candidates(name):
        if candidate.link.filename == wheel:
            return session, candidate.link.url_without_fragment
    raise LookupError(f"{wheel} is not in the package index")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
