"""`python -m labs_lib.grading.sandbox FOLDER`: the fence as a kernelspec for any front end.

With `--held` in place of a folder it says what holds the memory of graded kernels here.
"""

from __future__ import annotations

import sys
from pathlib import Path

from labs_lib.grading.sandbox import KERNEL_NAME, Policy, holding, level, write_kernelspec


def main(arguments: list[str]) -> int:
    """Write the kernelspec, and say how it is used and what it keeps out."""
    if arguments == ["--held"]:
        print(holding.here().sentence("are"))
        return 0
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python -m labs_lib.grading.sandbox FOLDER, or --held", file=sys.stderr)
        return 2
    folder = Path(arguments[0]).absolute()
    write_kernelspec(folder, policy=Policy())
    print(f'export JUPYTER_PATH="{folder}"')
    print(f"pytest --nbval --nbval-kernel-name {KERNEL_NAME} notebook.ipynb")
    print(f"jupyter execute --kernel_name={KERNEL_NAME} notebook.ipynb")
    print(f"papermill --kernel {KERNEL_NAME} notebook.ipynb output.ipynb")
    print(f"# {level(held=holding.here(move=False)).sentence.replace('ran', 'runs', 1)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
