"""Ways around the names that an exercise forbids, told from an answer's syntax tree.

A list of forbidden names can always be got round: by another name for the same thing, by a module
that holds everything, by a string. What leads there is said, and a person looks; nothing here
costs a point by itself.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from types import ModuleType

import torch

from ...notebook.bindings import MAX_CHARS, bound_names, parse

LIBRARY = "labs_lib"
SHARED = ("checking", "config", "cuda", "errors", "plots")  # parts of it that hold no answer
_PLAIN = {
    "__future__", "abc", "collections", "copy", "dataclasses", "decimal", "einops", "enum",
    "fractions", "functools", "itertools", "math", "matplotlib", "numbers", "numpy", "random",
    "scipy", "string", "sys", "time", "typing", "warnings", "cmath", "statistics", "pprint",
    "contextlib",
}  # fmt: skip
_TORCH = {"torch", "torch.nn", "torch.nn.functional", "torch.linalg", "torch.special", "torch.fft"}
_OUTWARD = {
    "_C", "ops", "jit", "onnx", "fx", "export", "library", "overrides", "modules", "os", "inspect",
    "gc", "builtins", "operator", "pickle", "marshal", "runpy", "attrgetter", "methodcaller",
    "__globals__", "__getattr__", "__closure__", "__code__", "__self__", "__wrapped__", "__mro__",
    "__subclasses__", "__module__", "__loader__", "__spec__", "__reduce__", "__func__",
    "__torch_function__", "__torch_dispatch__", "TorchFunctionMode", "TorchDispatchMode",
    "__annotations__", "__objclass__", "__class_getitem__", "get_type_hints", "ForwardRef", "mro",
    "load", "loads", "runstring", "rundocs", "hub", "get_device_module", "LowLevelCallable",
    "tb_frame", "tb_next", "gi_frame", "cr_frame", "ag_frame", "f_back", "f_builtins", "f_code",
    "breakpointhook", "displayhook", "excepthook", "path_hooks", "meta_path",
}  # fmt: skip
_USUAL = {
    "nn", "functional", "linalg", "special", "fft", "autograd", "random", "init", "cuda", "mps",
    "pyplot", "torch", "np", "numpy", "math", "cm", "colors", "ticker", "types", "version",
    "sparse", "amp", "parallel", "backends", "func", "attention", "copy", "parameter", "function",
    "graph", "signal", "numbers", "keyword", "optim", "dtypes", "warnings", "collections",
}  # fmt: skip
_OUT_OF_TORCH = {
    "numpy", "tolist", "from_numpy", "__array__", "__array_interface__", "asarray", "from_dlpack",
    "to_dlpack", "__dlpack__", "data_ptr", "frombuffer", "memoryview", "vectorize", "opt_einsum",
}  # fmt: skip
_SCALAR = {
    "inf", "nan", "pi", "e", "newaxis", "prod", "sqrt", "ceil", "floor", "log", "log2", "exp",
    "float16", "float32", "float64", "int32", "int64", "bool_", "integer", "floating", "ndarray",
    "finfo", "isfinite", "isnan", "isinf",
}  # fmt: skip
_ASSIGNED = re.compile(r"^([ \t]*)([\w\[][\w.,\[\] \t]*=[ \t]*)([%!].*)$", re.MULTILINE)
_IPYTHON = re.compile(r"^[ \t]*[?/,;]|\?[ \t]*$", re.MULTILINE)
_KIN = ("attention", "transformer")  # torch and others have many layers by such names
_PUBLIC = "scaled_dot_product_attention"  # forbidden by its own name where it is, else allowed


def in_python(text: str) -> str:
    """A cell's text with IPython's cell magics and assigned magics as plain magic lines."""
    if text.lstrip().startswith("%%"):
        text = text.replace("%%", "%", 1)
    return _ASSIGNED.sub(r"\1\2None\n\1\3", text)


def opaque(text: str) -> bool:
    """Whether a text that doesn't parse may be run all the same: too long to be read, or IPython's
    own way of writing."""
    return parse(text) is None and (len(text) > MAX_CHARS or bool(_IPYTHON.search(text)))


def from_the_library(texts: Sequence[str]) -> list[str]:
    """The modules of the course's library that an answer imports, but for those it is given."""
    found = []
    for module in (name for text in texts for name in _modules(text)):
        root, *below = module.split(".")
        if root == LIBRARY and (not below or below[0] not in SHARED):
            found.append(module)
    return list(dict.fromkeys(found))


def around(texts: Sequence[str], forbidden: Iterable[str]) -> list[str]:
    """What in the texts may lead to a forbidden thing by another name than its own."""
    kin = [word for word in _KIN if any("attention" in name.casefold() for name in forbidden)]
    found: list[str] = []
    inner = inner_modules()
    for text in texts:
        found += [m for m in _modules(text) if not _usual(m)]
        tree = parse(text)
        if tree is None:
            continue
        own = {node.name for node in ast.walk(tree) if isinstance(node, _DEFINITIONS)}
        found += [
            name
            for name, root in _taken(tree)
            if name in _OUTWARD
            or (
                root not in ("self", "cls")
                and name not in own
                and (name in inner or _suspicious(name, kin))
            )
        ]
    return list(dict.fromkeys(found))


def out_of_torch(texts: Sequence[str]) -> list[str]:
    """What in the texts takes numbers out of torch, whose operators alone are counted by rules.

    numpy's constants, and what it does to one number, are no work.
    """
    found: list[str] = []
    for text in texts:
        arrays = {"np", "numpy", *(a.asname or a.name for a in _imports(text, "numpy"))}
        found += [a.name for a in _imports(text, "scipy")]
        found += [
            f"{root}.{name}" if root in arrays else name
            for name, root in _taken_in(text)
            if name in _OUT_OF_TORCH
            or (root in arrays and name not in _SCALAR)
            or root.partition(".")[0] == "scipy"
        ]
    return list(dict.fromkeys(found))


def _imports(text: str, root: str) -> Iterator[ast.alias]:
    for node in _walk(parse(text)):
        if isinstance(node, ast.Import):
            yield from (a for a in node.names if a.name.partition(".")[0] == root)


def _taken_in(text: str) -> Iterator[tuple[str, str]]:
    tree = parse(text)
    return iter(()) if tree is None else _taken(tree)


@cache
def inner_modules() -> frozenset[str]:
    """Names under which a module that answers use holds other modules: `torch.hub`, `enum.sys`.

    Nearly all lead on to everything. Those that ordinary answers pass through are left out, and
    so are names of tensors' own methods.
    """
    names = {*_PLAIN, *_TORCH, "torch.autograd", "matplotlib.pyplot", "einops.einops"}
    held = {
        name
        for module in (sys.modules.get(name) for name in names)
        if module is not None
        for name, value in vars(module).items()
        if isinstance(value, ModuleType)
    }
    return frozenset(held - _USUAL - set(dir(torch.Tensor)))


def rebound(text: str) -> frozenset[str]:
    """Every name that a text may bind outside of its functions, by whatever statement."""
    return frozenset(bound_names(text)) if len(text) > MAX_CHARS else _rebound(text)


@lru_cache(maxsize=256)
def _rebound(text: str) -> frozenset[str]:
    """Kept, since each of a notebook's exercises looks at all of its answers."""
    tree = parse(text)
    names = bound_names(text)
    waiting: list[ast.AST] = [tree] if tree is not None else []
    names |= {n for node in _walk(tree) if isinstance(node, ast.Global) for n in node.names}
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, (ast.MatchAs, ast.MatchStar, ast.ExceptHandler)):
            names |= {node.name} if node.name else set()
        elif isinstance(node, ast.MatchMapping):
            names |= {node.rest} if node.rest else set()
        if not isinstance(node, (*_DEFINITIONS, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)
    return frozenset(names)


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _walk(tree: ast.Module | None) -> Iterator[ast.AST]:
    return iter(()) if tree is None else ast.walk(tree)


def _usual(module: str) -> bool:
    root = module.partition(".")[0]
    return root in _PLAIN or root == LIBRARY or module in _TORCH


def _suspicious(name: str, kin: Sequence[str]) -> bool:
    private = name.startswith("_") and not name.endswith("__")
    return private or (name != _PUBLIC and any(word in name.casefold() for word in kin))


def _modules(text: str) -> Iterator[str]:
    """Every module that a text imports, by its full name."""
    for node in _walk(parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            inside = node.module == LIBRARY
            yield from (f"{LIBRARY}.{a.name}" for a in node.names if inside)
            yield from [] if inside else [node.module or ""]


def _taken(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Each name taken from something, as an attribute or by import, and what it is taken from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield node.attr, node.value.id if isinstance(node.value, ast.Name) else ""
        elif isinstance(node, ast.ImportFrom):
            yield from ((alias.name, node.module or "") for alias in node.names)
        elif isinstance(node, ast.MatchClass):
            yield from ((name, "") for name in node.kwd_attrs)
        elif isinstance(node, _DEFINITIONS) and node.name in _OUTWARD:
            yield node.name, ""
