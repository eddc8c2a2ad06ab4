"""A kernel can't ask where it is compiled: it would be another one where it is graded."""

from __future__ import annotations

import pytest

from labs_lib.cuda import CompileError
from labs_lib.cuda.reading import refuse

KERNEL = "__global__ void k(float* x) { x[0] = 1; }\n"


@pytest.mark.parametrize(
    "line",
    [
        '#if __has_include("/labs/run.json")\n#endif',
        "#ifdef __has_include\n#if __has_include(<labs.h>)\n#endif\n#endif",
        "#define ASK __has_include_next\n#if ASK(<labs.h>)\n#endif",
        '#if __has_embed("/labs/run.json")\n#endif',
    ],
)
def test_no_kernel_asks_which_files_there_are(line):
    with pytest.raises(CompileError, match="which files"):
        refuse(f"{line}\n{KERNEL}")
