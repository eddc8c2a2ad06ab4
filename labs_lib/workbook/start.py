"""`labs start`: JupyterLab on the first notebook, with settings of the course's folder alone.

Nothing is written to the user's own Jupyter or IPython folders, and none of their settings apply.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import nbformat
from nbformat.sign import NotebookNotary

from ..errors import UsageError
from ..exercises import lab as find_lab
from ..exercises import labs
from ..paths import home
from . import files

SETTINGS = Path(__file__).parent / "jupyter"


def start(browser: bool = True, port: int | None = None) -> int:
    """Start JupyterLab in the foreground; return its exit code when it ends.

    Raises:
        UsageError: if JupyterLab isn't installed, the port can't be, or the notebook isn't there.
    """
    if importlib.util.find_spec("jupyterlab") is None:
        raise UsageError("JupyterLab is not installed in this environment; `make lab` installs it")
    command, env = command_line(browser, port), environment()
    trust()
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "posix":
        os.chdir(home())
        os.execve(command[0], command, env)
    try:
        return subprocess.call(command, env=env, cwd=home())
    except KeyboardInterrupt:
        return 0


def command_line(browser: bool = True, port: int | None = None) -> list[str]:
    """The command that starts JupyterLab on `notebooks/00_start_here.ipynb`.

    Raises:
        UsageError: if the port isn't 1 to 65535, or the notebook isn't there.
    """
    if port is not None and not 1 <= port <= 65535:
        raise UsageError(f"--port {port} is no port; give 1 to 65535, or none to take a free one")
    first = files.notebook_of(find_lab(0).stem)
    page = f"/lab/tree/{quote(first.relative_to(home()).as_posix())}"
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={home()}"]
    command.append(f"--LabApp.default_url={page}")
    command += ["--LabApp.extension_manager=readonly", "--LanguageServerManager.autodetect=False"]
    if not browser:
        command.append("--no-browser")
    if port is not None:
        command.append(f"--ServerApp.port={port}")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    return command


def environment(own: Path | None = None) -> dict[str, str]:
    """The environment of a server and its kernels, which write below `own`; unless it is given,
    into the course's folder."""
    env = dict(os.environ)
    env.pop("JUPYTER_PATH", None)
    own = own or _own()
    env |= {
        "JUPYTER_CONFIG_PATH": str(SETTINGS),
        "JUPYTER_CONFIG_DIR": str(own / "config"),
        "JUPYTER_DATA_DIR": str(own / "data"),
        "JUPYTER_RUNTIME_DIR": str(own / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(own / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(own / "workspaces"),
        "IPYTHONDIR": str(own / "ipython"),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), env.get("PATH", "")]),
    }
    return env


def trust() -> list[Path]:
    """Trust the course's own notebooks, so that their saved widgets show; return those trusted."""
    data = _own() / "data"
    data.mkdir(parents=True, exist_ok=True)
    notary = NotebookNotary(data_dir=str(data))
    trusted = []
    for lab in labs():
        for folder in ("notebooks", "solutions"):
            path = home() / folder / f"{lab.stem}.ipynb"
            try:
                notary.sign(nbformat.read(path, as_version=4))
            except Exception:  # a notebook that can't be read opens untrusted, or not at all
                continue
            trusted.append(path)
    return trusted


def _own() -> Path:
    return files.own_state().resolve() / "jupyter"
