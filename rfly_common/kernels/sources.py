"""The source files that a compiled kernel depends on, their hash, and where it is cached.

Standard library only; used by `wheels/` too.
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
"""the folder that holds `rfly_common` and its sister packages: the checkout or site-packages"""

_HOLDS_KERNELS = re.compile(rb"from rfly_common\.kernels\.jit import .*kernel")
_IMPORT = re.compile(
    r"^\s*(?:from\s+(rfly_[\w.]+)\s+import\s+(\([^)]*\)|.*)|import\s+(rfly_[\w.]+))", re.MULTILINE
)


def user_cache() -> Path:
    """Where this platform keeps what a program can make anew, or what NUMBA_CACHE_DIR says."""
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
    """`file` and the modules of the suite that it imports, directly or not: all that can be
    compiled into its kernels.

    Imports are found in the text, those inside functions included, so the set may be too large but
    not too small.
    """
    found: set[Path] = set()
    waiting = {file}
    while waiting:
        found |= waiting
        waiting = set().union(*map(_imported_files, waiting)) - found
    return found


def digest_of_kernels() -> str:
    """`digest` of all that any kernel of the suite is compiled from."""
    files = PACKAGES.glob("rfly_*/**/*.py")
    return digest(
        set().union(
            *(source_files(file) for file in files if _HOLDS_KERNELS.search(file.read_bytes()))
        )
    )


def digest(files: Iterable[Path]) -> str:
    """SHA-256 over names and contents, the same in each clone and install of the same sources."""
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
    for package, names, module in _IMPORT.findall(file.read_text(encoding="utf-8")):
        if module:
            files.add(_module_file(module))
        for name in re.findall(
            r"\w+", names
        ):  # a module of that package, or what the package's own file defines
            files.add(_module_file(f"{package}.{name}") or _module_file(package))
    return frozenset(file for file in files if file)


@functools.cache
def _module_file(name: str) -> Path | None:
    path = PACKAGES.joinpath(*name.split("."))
    return next(
        (file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None
    )
