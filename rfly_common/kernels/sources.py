# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Source files that a compiled kernel depends on, their hash, and the folder of its cache.

Standard library only, as `wheels/` uses it too.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path

PACKAGES = Path(__file__).parents[2]
"""Folder that holds `rfly_common` and its sister packages: the checkout or site-packages."""

# which files hold kernels, and the modules of the suite that a file imports
_HOLDS_KERNELS = re.compile(rb"from rfly_common\.kernels\.jit import .*kernel")
_IMPORT = re.compile(
    r"^\s*(?:from\s+(rfly_[\w.]+)\s+import\s+(\([^)]*\)|.*)|import\s+(rfly_[\w.]+))", re.MULTILINE
)
_TYPES_ONLY = re.compile(r"^if TYPE_CHECKING:\n(?:[ \t].*\n|\n)*", re.MULTILINE)


def user_cache() -> Path:
    """Return this platform's folder for what a program can make anew, or NUMBA_CACHE_DIR."""
    if os.environ.get("NUMBA_CACHE_DIR"):
        return Path(os.environ["NUMBA_CACHE_DIR"])

    variable, usual = {
        "win32": ("LOCALAPPDATA", "AppData/Local"),
        "darwin": ("", "Library/Caches"),
    }.get(sys.platform, ("XDG_CACHE_HOME", ".cache"))
    if os.environ.get(variable):
        return Path(os.environ[variable])
    try:
        return Path.home() / usual
    except RuntimeError:  # a user id without a home, as in some containers
        return Path(os.devnull)


def source_files(file: Path) -> set[Path]:
    """Return `file` and all modules of the suite that it imports, directly or not.

    These are all files that can be compiled into its kernels. Imports are found in the text, those
    inside functions included, so the set may be too large but not too small. Those for type
    checkers alone are left out: they are never executed.
    """
    found: set[Path] = set()
    waiting = {file}
    while waiting:
        found |= waiting
        waiting = set().union(*map(_imported_files, waiting)) - found
    return found


def digest_of_kernels() -> str:
    """Return the `digest` of all files that any kernel of the suite is compiled from."""
    files = PACKAGES.glob("rfly_*/**/*.py")
    kernels = [file for file in files if _HOLDS_KERNELS.search(file.read_bytes())]
    return digest(set().union(*map(source_files, kernels)))


def digest(files: Iterable[Path]) -> str:
    """Return the SHA-256 of names and contents, the same in each install of the same sources."""
    total = hashlib.sha256()
    for file in sorted(files):
        name = file.relative_to(PACKAGES).as_posix() if file.is_relative_to(PACKAGES) else file.name
        total.update(f"{name}\0{_file_digest(file)}\n".encode())
    return total.hexdigest()


@functools.cache
def _file_digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@functools.cache
def _imported_files(file: Path) -> frozenset[Path]:
    files = set()
    text = _TYPES_ONLY.sub("", file.read_text(encoding="utf-8"))
    for package, names, module in _IMPORT.findall(text):
        if module:
            files.add(_module_file(module))
        # a module of that package, or what the package's own file defines
        for name in re.findall(r"\w+", names):
            files.add(_module_file(f"{package}.{name}") or _module_file(package))
    return frozenset(file for file in files if file)


@functools.cache
def _module_file(name: str) -> Path | None:
    path = PACKAGES.joinpath(*name.split("."))
    return next(
        (file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None
    )
