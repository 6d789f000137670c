"""Cache of compiled kernels on disk: one for each user, shared by all checkouts and environments.

numba's own cache hashes the one file in which a kernel stands, so a change in a kernel that is
compiled into it, or in a constant from elsewhere, leaves old machine code running; it lies beside
the sources, one for each checkout; and its index of numbered files can name the wrong one after two
processes wrote at once. Here a module's kernels have a folder

    <user's cache>/rfly_suite/kernels/<module>-<stamp>/

whose stamp is a hash of all sources that the module imports (see `sources`) and of the versions of
Python, NumPy, numba and llvmlite, and each signature of a kernel has a file, whose name also covers
the processor. So a file never has to be checked for its age. Folders that nobody used for 30 days
are removed when a new one is made.

The environment variable NUMBA_CACHE_DIR, numba's own, names another folder than the user's cache.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import logging
import os
import pickle
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from rfly_common.kernels.sources import digest, source_files, user_cache

UNUSED_AFTER = 30 * 86400.0
"""s since a process last loaded from a folder"""

_logger = logging.getLogger(__name__)


class KernelCache(_Cache):
    """The cache of one kernel, as numba's dispatcher wants it. Where no file can be read or written
    it stays empty.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        if function.__closure__:
            raise TypeError(
                f"{function.__qualname__}: a kernel cannot have variables of an enclosing function"
            )
        self._folder = _folder(function.__module__, Path(inspect.getfile(function)))
        self._name = f"{function.__name__}-{function.__code__.co_firstlineno}"

    @property
    def cache_path(self) -> str:
        return str(self._folder)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The machine code for this signature, or None."""
        target_context.refresh()
        try:
            parts = pickle.loads(self._file(signature, target_context.codegen()).read_bytes())
        except (OSError, EOFError, pickle.UnpicklingError):
            _log_once("compiling numerical kernels, once for this version: up to a minute")
            return None
        return CompileResult._rebuild(target_context, *parts)

    def save_overload(self, signature: Any, result: Any) -> None:
        """Writes a new file, which replaces that of a process that was quicker."""
        if result.library.has_dynamic_globals:  # addresses of this process
            return
        file = self._file(signature, result.library.codegen)
        try:
            if not self._folder.is_dir():
                _remove_unused(self._folder.parent)
                self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(
                dir=self._folder, suffix=".part", delete=False
            ) as part:
                part.write(dumps(result._reduce()))
            os.replace(part.name, file)
        except OSError:
            _log_once(
                f"no file can be written below {user_cache()}: kernels are compiled in each process"
            )

    def enable(self) -> None:
        """Always enabled."""

    def disable(self) -> None:
        """Always enabled."""

    def flush(self) -> None:
        for file in self._folder.glob(f"{self._name}-*.nbc"):
            file.unlink(missing_ok=True)

    def _file(self, signature: Any, codegen: Any) -> Path:
        key = hashlib.sha256(repr((signature, codegen.magic_tuple())).encode()).hexdigest()
        return self._folder / f"{self._name}-{key[:16]}.nbc"


@functools.cache
def _folder(module: str, file: Path) -> Path:
    versions = (sys.version, np.__version__, numba.__version__, llvmlite.__version__)
    stamp = hashlib.sha256(repr((digest(source_files(file)), versions)).encode()).hexdigest()
    folder = user_cache() / "rfly_suite" / "kernels" / f"{module}-{stamp[:16]}"
    with contextlib.suppress(OSError):  # not there yet, or not ours
        os.utime(folder)  # in use
    return folder


def _remove_unused(folder: Path) -> None:
    for entry in folder.glob("*-*"):
        try:
            unused = time.time() - entry.stat().st_mtime > UNUSED_AFTER
        except OSError:  # another process removed it
            continue
        if unused:
            shutil.rmtree(entry, ignore_errors=True)


@functools.cache
def _log_once(text: str) -> None:
    _logger.info(text)
