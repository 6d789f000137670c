# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Interface packages for a machine without ROS: generated for Python alone, and cached.

Each build is kept in the user's cache under a hash of its inputs, so that a second checkout unpacks
it instead of building it again.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import tarfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from layout import BUILD, ROOT, ROS_LOCK, SITE_PACKAGES, STAND_INS, VENV, WHEELS
from steps import SetupError
from tree import digest

from rfly_common.kernels.sources import user_cache

BUILDER = WHEELS / "build_interfaces.py"

UNUSED_AFTER = 30 * 86400.0
"""Age after which an archive is removed, s since a set-up last unpacked it."""


@dataclass(frozen=True)
class InterfacePackage:
    """An interface package.

    `name` is also its folder below `build/wheels`; `source` is the folder with its package.xml.
    """

    name: str
    source: Path

    @property
    def archive(self) -> Path:
        """Path of the package's archive in the cache; its name is a hash of all inputs."""
        makes = (self.source / folder for folder in ("action", "msg", "srv"))
        files = [
            *(file for folder in makes for file in folder.rglob("*") if file.is_file()),
            self.source / "package.xml",
            BUILDER,
            Path(__file__),
            ROS_LOCK,
        ]

        machine = (sys.version, platform.machine(), os.confstr("CS_GNU_LIBC_VERSION"))
        key = hashlib.sha256(f"{digest(files)}{machine}".encode()).hexdigest()
        return user_cache() / "rfly_suite" / "interfaces" / f"{self.name}-{key[:16]}.tar.gz"

    @property
    def python_package(self) -> Path:
        """Its Python package in .venv, without which its other files are useless."""
        return SITE_PACKAGES / self.name

    @property
    def manifest(self) -> Path:
        """The list of its files in .venv."""
        return BUILD / self.name / "install_manifest.txt"

    def restore(self) -> bool:
        """Unpack it from the cache into .venv; return False if it is missing or unreadable."""
        archive = self.archive
        names = []
        try:
            with tarfile.open(archive) as tar:
                module = self.python_package / "__init__.py"
                if str(module.relative_to(VENV)) not in tar.getnames():
                    return False

                for member in tar:
                    file = VENV / member.name
                    content = tar.extractfile(member)
                    if not member.isfile() or content is None or ".." in file.parts:
                        return False
                    file.parent.mkdir(parents=True, exist_ok=True)

                    # a new file: a node may be running with the old one
                    file.unlink(missing_ok=True)
                    file.write_bytes(content.read())
                    file.chmod(member.mode)
                    names.append(str(file))

            os.utime(archive)  # in use
        except (OSError, tarfile.TarError, EOFError):
            return False

        self.manifest.parent.mkdir(parents=True, exist_ok=True)
        self.manifest.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
        return True

    def keep(self) -> None:
        """Write the installed files into the cache; a cache that cannot be written is ignored."""
        files = [Path(line) for line in self.manifest.read_text(encoding="utf-8").splitlines()]
        if self.python_package / "__init__.py" not in files:
            raise SetupError(
                f"{self.manifest}: does not name {self.python_package / '__init__.py'}; try "
                "again: make clean"
            )

        archive = self.archive
        part = archive.with_suffix(f".{os.getpid()}.part")
        try:
            archive.parent.mkdir(parents=True, exist_ok=True)
            _remove_unused(archive.parent)
            with tarfile.open(part, "w:gz", compresslevel=3) as tar:
                for file in files:
                    tar.add(file, str(file.relative_to(VENV)))
            part.replace(archive)
        except OSError:
            part.unlink(missing_ok=True)


def interface_packages() -> list[InterfacePackage]:
    """Return the suite's own interfaces and those that the wheels lack, in no particular order."""
    stand_ins = (InterfacePackage(name, WHEELS / "interfaces" / name) for name in STAND_INS)
    return [InterfacePackage("rfly_suite", ROOT), *stand_ins]


def _remove_unused(folder: Path) -> None:
    archives: Iterable[Path] = folder.glob("*.tar.gz")
    for archive in archives:
        try:
            if time.time() - archive.stat().st_mtime > UNUSED_AFTER:
                archive.unlink()
        except OSError:  # another process removed it
            continue
