# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The checkout's files that the set-up reads, and removal of folders."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from layout import ROOT, SITE_PACKAGES, SOURCED, STAND_IN_MODULES, VENV, WHEELS

UNUSED = (
    *(f"{package}/**/tests" for package in ("matplotlib", "numba", "scipy")),
    "numpy/**/tests/test_*.py",  # `numpy.testing` of NumPy 2.2 takes another module from there
    "fontTools/**/*.c",  # its modules come compiled too
    "zstandard/_cffi.*",  # CPython takes the other back end
    "pip/**/__pycache__",
)
"""Patterns of unused files in site-packages."""

DIALECTS = ("__init__", "all", "common")
"""Dialects of pymavlink that stay: this package uses `common`, pymavlink's own tools load `all`."""


def cmake_inputs() -> Iterator[Path]:
    """Yield the inputs of the build: a change in any of them means configure and build again."""
    yield from (ROOT / name for name in ("CMakeLists.txt", "package.xml"))
    yield from (
        WHEELS / name
        for name in (
            "build_interfaces.py",
            "setup_env.py",
            "scripts.py",
            "rfly_suite_environment.py",
        )
    )
    for folder in ("action", "cmake", "msg", "srv", "wheels/interfaces"):
        yield from (file for file in (ROOT / folder).rglob("*") if file.is_file())


def installed_sources() -> Iterator[Path]:
    """Yield the files that .venv has as links: this package's, and without a ROS its stand-ins."""
    folders = [
        *ROOT.glob("rfly_*/"),
        *(ROOT / name for name in ("config", "launch", "rviz", "urdf")),
    ]
    if not SOURCED:
        folders.append(STAND_IN_MODULES)
    for folder in folders:
        yield from (
            file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts
        )


def link_sources() -> set[str]:
    """Install the packages and shared folders as links to each of their files; return the links."""
    links = set()
    for file in installed_sources():
        name = file.relative_to(ROOT)
        if file.is_relative_to(STAND_IN_MODULES):
            link = SITE_PACKAGES / file.relative_to(STAND_IN_MODULES)
        elif name.parts[0].startswith("rfly_"):
            link = SITE_PACKAGES / name
        else:
            link = VENV / "share" / "rfly_suite" / name
        if not link.is_symlink() or os.readlink(link) != str(file):
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(file)
        links.add(str(link))

    # files that have gone from the checkout: what lists the packages' files would fail on them
    for link in SITE_PACKAGES.glob("rfly_*/**/*"):
        if link.is_symlink() and not link.exists():
            link.unlink()
    return links


def digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(
            str(file.relative_to(ROOT)).encode()
            + b"\0"
            + hashlib.sha256(file.read_bytes()).digest()
        )
    return digest.hexdigest()


def digest_names(files: Iterable[Path]) -> str:
    names = sorted(str(file.relative_to(ROOT)) for file in files)
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def remove(folder: Path) -> None:
    """Remove a folder in two steps, so that an interruption never leaves half of it in place."""
    if folder.exists() or folder.is_symlink():
        doomed = folder.with_name(f"{folder.name}.removed")
        shutil.rmtree(doomed, ignore_errors=True)
        folder.rename(doomed)
        shutil.rmtree(doomed)


def slim() -> None:
    """Remove unused files of wheels from .venv: `UNUSED`, dialects, and copies of libraries.

    They take 120 MB in the environment of the demo and 200 MB in that of the tests.

    A wheel holds no links. So each name of a library is a file of its own, and a library that
    several wheels need is there several times.
    """
    for pattern in UNUSED:
        for path in list(SITE_PACKAGES.glob(pattern)):
            if path.is_dir():
                remove(path)
            else:
                path.unlink(missing_ok=True)

    # dialects: modules, their byte code and their XML
    for path in list(SITE_PACKAGES.glob("pymavlink/dialects/v*/**/*.*")):
        if path.name.split(".")[0] not in DIALECTS:
            path.unlink()

    # libraries of one size may be equal
    of_size: defaultdict[int, list[Path]] = defaultdict(list)
    for library in sorted(VENV.rglob("*.so*")):
        if library.is_file() and not library.is_symlink():
            of_size[library.stat().st_size].append(library)

    # link the equal ones
    for libraries in of_size.values():
        first: dict[bytes, Path] = {}
        for library in libraries if len(libraries) > 1 else ():
            same = first.setdefault(hashlib.sha256(library.read_bytes()).digest(), library)
            if not same.samefile(library):
                part = library.with_name(f".{library.name}.part")
                with contextlib.suppress(OSError):  # a file system without hard links
                    os.link(same, part)
                    part.replace(library)


def remove_if_only_caches(folder: Path) -> None:
    """Remove folders that hold only caches: they would be importable as namespace packages."""
    for inner in [
        path for path in folder.iterdir() if path.is_dir() and path.name != "__pycache__"
    ]:
        remove_if_only_caches(inner)
    if all(path.name == "__pycache__" for path in folder.iterdir()):
        shutil.rmtree(folder)
