"""The student's copy as a git clone: what is new at its source, and how to arrive there.

The working tree is never reset: files are written one by one, and only then the branch moves. A
call that was killed half-way is repeated and goes on.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..errors import UsageError
from .new_release import NewRelease, is_notebook

MESSAGE = "Bring the course up to date; `labs update` merged the notebooks"


@dataclass(frozen=True)
class Clone:
    """A git clone whose top is the course's folder."""

    home: Path

    @property
    def there(self) -> bool:
        """Whether the course's folder is the top of a git clone, and git is installed."""
        try:
            top = self._git("rev-parse", "--show-toplevel").decode().rstrip("\n")
        except (UsageError, OSError):
            return False
        return Path(top).resolve() == self.home.resolve()

    def fetch(self) -> str:
        """Fetch what is new; the commit to arrive at.

        Raises:
            UsageError: if there is no source, it can't be reached, or a merge is under way.
        """
        for name in ("MERGE_HEAD", "rebase-merge", "rebase-apply"):
            if (self.home / self._line("rev-parse", "--git-path", name)).exists():
                raise UsageError(
                    "git has a merge or rebase under way here; end it first, for example with "
                    "git merge --abort"
                )
        remote = self._remote()
        try:
            self._git("fetch", "--quiet", remote)
        except UsageError as error:
            raise UsageError(
                f"{remote} can't be reached ({error}); nothing was changed. Without a network, "
                "give a folder or a .zip: labs update --from FOLDER"
            ) from error
        return self._target(remote)

    def release(self, target: str) -> NewRelease:
        """The files of a commit that differ from where this clone's history left it."""
        files, executable = {}, set()
        for path, (mode, blob) in self._tree(target).items():
            if mode.startswith("100"):
                files[path] = lambda blob=blob: self._git("cat-file", "blob", blob)
                if mode == "100755":
                    executable.add(path)
        name = self._line("log", "-1", "--format=%h of %cs", target)
        return NewRelease(name, files, frozenset(executable))

    def changed(self, target: str) -> tuple[list[str], list[str], list[str]]:
        """Paths that the release writes, those that it removes, and solutions changed here.

        Students' notebooks are left out.

        Raises:
            UsageError: if the histories have nothing in common, or a file that it changes was
                changed here too.
        """
        base = self._base(target)
        old, new = self._tree(base), self._tree(target)
        written = [p for p in new if new[p] != old.get(p) and not is_notebook(p)]
        removed = [p for p in old if p not in new and not is_notebook(p)]
        changed = self._changed_here([*written, *removed], old, new)
        run = [p for p in changed if p.startswith("solutions/")]  # whoever runs one changes it
        mine = [p for p in changed if p not in run]
        if mine:
            names = ", ".join(mine[:5]) + (f" and {len(mine) - 5} more" if len(mine) > 5 else "")
            raise UsageError(
                f"you changed {names}, which the new release changes too; nothing was done. "
                "Put your changes aside (git stash push -- FILE), update, and bring them back"
            )
        return written, removed, run

    def handed_out(self, name: str, target: str | None = None) -> bytes | None:
        """A notebook as the student began with it, at the last commit shared with the source.

        Their own commits hold their answers, so HEAD would not do.
        """
        try:
            shared = self._base(target or self._target(self._remote()))
            return self._git("show", f"{shared}:notebooks/{name}")
        except UsageError:
            return None

    def arrive(self, target: str, paths: Iterable[str]) -> None:
        """Move the branch to the new release, or make a merge of both where it has own commits.

        Files in the working tree stay as they are.
        """
        if not self._ahead(target):
            self._git("reset", "--quiet", target)
            return
        tree = self._merged_tree(target, paths)
        made = self._line("commit-tree", tree, "-p", "HEAD", "-p", target, "-m", MESSAGE)
        self._git("reset", "--quiet", made)

    def can_arrive(self, target: str) -> None:
        """Raise a `UsageError` now if `arrive` could not be done later."""
        if self._ahead(target):
            self._git("var", "GIT_COMMITTER_IDENT")

    def _changed_here(self, paths: Iterable[str], *sides: dict[str, tuple[str, str]]) -> list[str]:
        """Those of the files here that are as neither side has them."""
        there = [p for p in paths if os.path.lexists(self.home / p)]
        plain = [p for p in there if (self.home / p).is_file() and not (self.home / p).is_symlink()]
        listed = "".join(f"{p}\n" for p in plain).encode()
        blobs = self._git("hash-object", "--stdin-paths", text=listed).decode().split()
        found = dict(zip(plain, blobs, strict=True))
        return [p for p in there if found.get(p) not in {s[p][1] for s in sides if p in s}]

    def _merged_tree(self, target: str, paths: Iterable[str]) -> str:
        """HEAD's tree with the given files as they are in the working tree now."""
        with tempfile.TemporaryDirectory() as folder:
            index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
            self._git("read-tree", "HEAD", env=index)
            listed = "\0".join(paths).encode()
            self._git("update-index", "--add", "--remove", "-z", "--stdin", env=index, text=listed)
            return self._git("write-tree", env=index).decode().strip()

    def _ahead(self, target: str) -> bool:
        return self._line("rev-list", "--count", f"{target}..HEAD") != "0"

    def _base(self, target: str) -> str:
        try:
            return self._line("merge-base", "HEAD", target)
        except UsageError as error:
            raise UsageError(
                "the new release and this clone have no common history; download it and give "
                "it: labs update --from FOLDER_OR_ZIP"
            ) from error

    def _remote(self) -> str:
        remotes = self._git("remote").decode().split()
        branch = self._git("rev-parse", "--abbrev-ref", "HEAD").decode().strip()
        try:
            own = self._line("config", "--get", f"branch.{branch}.remote")
        except UsageError:
            own = ""
        for name in ("upstream", own, "origin", *remotes):
            if name in remotes:
                return name
        raise UsageError(
            "this clone has no source to fetch from; give the new release: "
            "labs update --from FOLDER_OR_ZIP"
        )

    def _target(self, remote: str) -> str:
        branch = self._line("rev-parse", "--abbrev-ref", "HEAD")
        for name in (f"{remote}/{branch}", f"{remote}/HEAD", f"{remote}/main", f"{remote}/master"):
            try:
                return self._line("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
            except UsageError:
                continue
        raise UsageError(f"{remote} has no branch {branch} and no main; nothing was changed")

    def _tree(self, commit: str) -> dict[str, tuple[str, str]]:
        """Every file of a commit: path -> mode, blob."""
        found = {}
        for entry in self._git("ls-tree", "-r", "-z", commit).split(b"\0"):
            if entry:
                about, _, path = entry.partition(b"\t")
                mode, _, blob = about.decode().split(" ")
                found[os.fsdecode(path)] = (mode, blob)
        return found

    def _line(self, *arguments: str) -> str:
        return self._git(*arguments).decode().strip()

    @cached_property
    def _environment(self) -> dict[str, str]:
        own = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
        return {k: v for k, v in os.environ.items() if k not in own}

    def _git(self, *arguments: str, env: dict[str, str] | None = None, text: bytes = b"") -> bytes:
        done = subprocess.run(
            ["git", "-c", "core.quotePath=false", *arguments],
            cwd=self.home,
            env=self._environment | (env or {}),
            input=text,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise UsageError(f"git {arguments[0]}: {said[-1] if said else done.returncode}")
        return done.stdout
