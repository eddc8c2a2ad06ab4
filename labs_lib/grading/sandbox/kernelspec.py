"""The fence as an ordinary kernelspec."""

from __future__ import annotations

import json
from pathlib import Path

from labs_lib.grading.sandbox import holding
from labs_lib.grading.sandbox.policy import Policy

KERNEL_NAME = "labs-sandbox"


def write_kernelspec(folder: Path, *, policy: Policy, warm: Path | None = None) -> Path:
    """Write `kernels/labs-sandbox/kernel.json` below `folder` and return its path.

    Put `folder` on JUPYTER_PATH; then `--nbval-kernel-name labs-sandbox`, nbclient and JupyterLab
    start fenced kernels. Interrupts go as messages: a signal would end the fence itself. With the
    socket of a `Nursery` as `warm`, kernels are forked from it while it lives. Where this process
    has found that it may make control groups, kernels have theirs there while it lives.
    """
    known = holding.known()
    groups = [] if known is None else [str(folder) for folder in known.folders]
    spec = {
        "argv": [
            str(Path(policy.python).absolute()),
            "-m",
            "ipykernel_launcher",
            "-f",
            "{connection_file}",
            "--HistoryManager.enabled=False",
            "--InteractiveShellApp.ignore_cwd=True",
        ],
        "display_name": "Attention Labs, fenced",
        "language": "python",
        "interrupt_mode": "message",
        "metadata": {
            "kernel_provisioner": {
                "provisioner_name": KERNEL_NAME,
                "config": {
                    "policy": policy.to_json(),
                    "warm": str(warm or ""),
                    "groups": groups,
                },
            }
        },
    }
    target = Path(folder) / "kernels" / KERNEL_NAME / "kernel.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(spec, indent=1), encoding="utf-8")
    return target
