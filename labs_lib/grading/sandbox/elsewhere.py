"""Import the library of a handout ahead of the fences in which it will lie at another place.

Loaded by path by `warm.py`, with the standard library alone. The modules, their code and their
specs say the place inside, so that a kernel forked from here can't tell that it has not imported
them itself; whatever is missing it imports there.
"""

import contextlib
import importlib
import importlib.util
import os
import sys
from importlib.machinery import SourceFileLoader

LIBRARY = "labs_lib"


class _Loader(SourceFileLoader):
    """Reads the files below one folder as if they lay below another one."""

    def __init__(self, name, path, outside, inside):
        super().__init__(name, path)
        self.outside, self.inside = outside, inside

    def get_data(self, path):
        return super().get_data(self._really(path))

    def path_stats(self, path):
        return super().path_stats(self._really(path))

    def set_data(self, path, data, *, _mode=0o666):
        """Write no bytecode."""

    def _really(self, path):
        return self.outside + path.removeprefix(self.inside)


class _Finder:
    """Finds the library's modules in a handout."""

    def __init__(self, outside, inside):
        self.outside, self.inside = outside, inside

    def find_spec(self, name, path=None, target=None):
        """See `importlib.abc.MetaPathFinder`."""
        if name.partition(".")[0] != LIBRARY:
            return None
        below = "/" + name.replace(".", "/")
        for file in (f"{below}/__init__.py", f"{below}.py"):
            if os.path.isfile(self.outside + file):
                place = self.inside + file
                package = [self.inside + below] if file.endswith("__init__.py") else None
                return importlib.util.spec_from_file_location(
                    name,
                    place,
                    loader=_Loader(name, place, self.outside, self.inside),
                    submodule_search_locations=package,
                )
        return None


def import_library(outside, inside, modules):
    """Import `modules` from the folder `outside`, as they will lie in the folder `inside`."""
    finder = _Finder(outside, inside)
    sys.meta_path.insert(0, finder)
    try:
        for name in modules:
            with contextlib.suppress(Exception):  # the kernel tries again, and says what is wrong
                importlib.import_module(name)
    finally:
        sys.meta_path.remove(finder)
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        if name.partition(".")[0] == LIBRARY and spec is not None and spec.origin:
            spec.loader = module.__loader__ = SourceFileLoader(name, spec.origin)
