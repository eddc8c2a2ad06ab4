"""The lock file, environment.yml and pyproject.toml describe one environment."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = ("3.11", "3.12", "3.13")


def lock_lines():
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    return [x.strip() for x in text.splitlines() if x.strip() and not x.startswith("#")]


LOCK = [Requirement(line) for line in lock_lines()]


def locked_here():
    """The locked version of each package on this machine."""
    return {
        canonicalize_name(r.name): next(iter(r.specifier)).version
        for r in LOCK
        if r.marker is None or r.marker.evaluate()
    }


def test_every_line_pins_one_public_version():
    for requirement in LOCK:
        (pin,) = requirement.specifier
        assert pin.operator == "=="
        assert Version(pin.version).local is None, f"{requirement}: a local build is nobody else's"
        assert requirement.url is None
    assert lock_lines() == sorted(lock_lines())


def test_lock_names_no_index_and_no_path():
    assert not [x for x in lock_lines() if x.startswith(("-", ".", "/")) or "://" in x]


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_each_package_has_one_version_on_each_python_and_platform(python, platform):
    place = default_environment() | {
        "python_version": python,
        "python_full_version": f"{python}.9",
        "sys_platform": platform,
    }
    names = [canonicalize_name(r.name) for r in LOCK if not r.marker or r.marker.evaluate(place)]
    assert len(names) == len(set(names))


def test_everything_that_the_project_asks_for_is_locked_within_its_range():
    locked = locked_here()
    # Peers that `labs bench` looks for, and a cluster: no lab needs their 60 MB and more.
    optional = PROJECT["optional-dependencies"]
    wanted = [extra for extra in optional if extra not in ("bench", "dask")]
    extras = [text for extra in wanted for text in optional[extra]]
    asked = [*PROJECT["dependencies"], *extras, "setuptools>=77", "wheel"]
    for requirement in map(Requirement, asked):
        name = canonicalize_name(requirement.name)
        assert name in locked, f"{name} is missing in requirements.lock"
        assert requirement.specifier.contains(locked[name]), f"{requirement}: {locked[name]}"


def test_everything_that_a_locked_package_needs_is_locked_too():
    """Torch's CUDA packages aside: the CUDA build pins them itself, the CPU build has none."""
    locked = locked_here()
    for name in locked:
        for text in metadata.distribution(name).requires or []:
            needed = Requirement(text)
            if needed.marker and not needed.marker.evaluate({"extra": ""}):
                continue
            wanted = canonicalize_name(needed.name)
            if name == "torch" and re.match(r"nvidia-|cuda-|triton", wanted):
                continue
            assert wanted in locked, f"{name} needs {wanted}, which requirements.lock lacks"


def test_installed_packages_are_the_locked_ones():
    wrong = {
        name: (metadata.version(name), version)
        for name, version in locked_here().items()
        if Version(metadata.version(name)).public != version
    }
    assert wrong == {}, "installed, locked: run `make setup`"


def test_conda_environment_is_the_lock_on_the_same_pythons():
    conda = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    python, pip, packages = conda["dependencies"]
    assert pip == "pip"
    assert packages == {"pip": ["-r requirements.lock"]}
    assert conda["name"] == PROJECT["name"]
    assert SpecifierSet(python.removeprefix("python ")) == SpecifierSet(PROJECT["requires-python"])


def test_supported_pythons_are_said_alike_everywhere():
    allowed = SpecifierSet(PROJECT["requires-python"])
    assert [f"3.{n}" for n in range(8, 16) if f"3.{n}.0" in allowed] == list(PYTHONS)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "(3, 11) <= sys.version_info[:2] <= (3, 13)" in makefile


def test_set_up_installs_the_lock_and_the_package_without_its_dependencies():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "-r requirements.lock" in makefile
    assert "--no-deps --no-build-isolation -e ." in makefile
