"""The environment of a fenced kernel: made from nothing, never inherited."""

from __future__ import annotations

from pathlib import Path

from labs_lib.grading.sandbox.policy import Policy


def clean_environment(
    policy: Policy, *, home: str, scratch: str, handout: str | None, run_json: str | None
) -> dict[str, str]:
    """The kernel's variables; the paths are those that the kernel itself sees.

    One thread and a fixed hash seed make runs equal; no index, no proxy and no token of the
    grader's own session are passed on, and neither is JPY_PARENT_PID, which would make a kernel
    in a process namespace of its own leave at once.
    """
    python_folder = str(Path(policy.python).absolute().parent)
    environment = {
        "HOME": home,
        "TMPDIR": scratch,
        "PATH": f"{python_folder}:/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONSAFEPATH": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "OMP_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "2",
        "MPLBACKEND": "Agg",
        "MPLCONFIGDIR": f"{home}/.matplotlib",
        "IPYTHONDIR": f"{home}/.ipython",
        "JUPYTER_CONFIG_DIR": f"{home}/.jupyter",
        "JUPYTER_DATA_DIR": f"{home}/.jupyter",
        "JUPYTER_RUNTIME_DIR": f"{home}/.jupyter",
        "XDG_CACHE_HOME": f"{home}/.cache",
        "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "TQDM_DISABLE": "1",
        "NO_COLOR": "1",
    }
    if handout is not None:
        environment["PYTHONPATH"] = handout
    if run_json is not None:
        environment["LABS_RUN"] = run_json
    return environment | dict(policy.environment)
