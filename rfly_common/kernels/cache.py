# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Cache of compiled kernels on disk: one for each user, shared by all checkouts and environments.

numba's own cache hashes the one file that defines a kernel. A change in a kernel that is compiled
into it, or in a constant from another module, leaves old machine code running. Its files lie next
to the sources, one set for each checkout, and its index of numbered files can name the wrong one
after two processes wrote at once. Here the kernels of a module have a folder

    <user's cache>/rfly_suite/kernels/<module>-<stamp>/

The stamp is a hash of all sources that the module imports (see `sources`) and of the versions of
Python, NumPy, numba and llvmlite. Each signature of a kernel has one file in it; the file's name
also covers the processor and the fields of records. So no file ever has to be checked for its age.
Processes that start together compile each kernel once: the others wait for its file. Folders that
no process used for 30 days are removed when a new one is made.

A file holds a magic word, the length of numba's pickled machine code, a SHA-256 of the file's
folder and name and of that code, and the code. A file that is truncated or altered, that holds
another kernel's code, or that numba cannot load, is logged once, and the kernel is compiled anew
and its file replaced. The hash guards against damage. It is no signature: a
program that can write to the user's cache can run code as that user.

How it is hooked into numba: a compiled function asks the object in its attribute `_cache` before
it compiles a signature and hands it the result afterwards. `numba.core.caching._Cache` is the
abstract base class of such objects, and `enable_caching`, which `njit(cache=True)` calls, does
nothing but set the attribute. `jit` sets it to a `KernelCache`. A registered cache locator, numba's
public hook, would choose folder and stamp too, but it keeps the index of numbered files, and numba
falls back to its own folders where this one cannot be written. The names used here are the same in
numba 0.59 and 0.68.

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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import llvmlite
import numba
import numpy as np
from numba.core import types
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from rfly_common.kernels.sources import digest, source_files, user_cache

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LONGEST_WAIT = 60.0
"""Time for which a process waits for another one that compiles a kernel, and may stand, s.

After that it compiles for itself and waits for none any more.
"""

_POLL = 0.02
"""Time between two looks at whether it has done so, s."""

UNUSED_AFTER = 30 * 86400.0
"""Time since a process last loaded from a folder after which it is removed, s."""

MAGIC = b"rfly kernel 2\n"
"""First bytes of each file."""

_HASH_BYTES = hashlib.sha256().digest_size
_LENGTH_BYTES = 8

_logger = logging.getLogger(__name__)


class KernelCache(_Cache):
    """Cache of one kernel; it stays empty where no file can be read or written."""

    waits = True
    """Whether this process waits for another one that compiles the same kernel."""

    def __init__(self, function: Callable[..., Any]) -> None:
        if function.__closure__:
            raise TypeError(
                f"{function.__qualname__}: a kernel cannot have variables of an enclosing function"
            )
        self._folder = _folder(function.__module__, Path(inspect.getfile(function)))
        self._name = f"{function.__name__}-{function.__code__.co_firstlineno}"
        self._turns: dict[Path, BinaryIO] = {}

    @property
    def cache_path(self) -> str:
        """Folder of the module's kernels."""
        return str(self._folder)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the machine code for this signature; None without a file that can be used."""
        target_context.refresh()
        file = self._file(signature, target_context.codegen())
        content = _content(file)
        if content is None:
            _log_once("compiling numerical kernels, once for this version")
            self._take_turn(file)
            content = _content(file)
        if content is None:
            return None

        try:
            self._end_turn(file)
            return CompileResult._rebuild(target_context, *pickle.loads(unsealed(content, file)))
        except Exception as error:  # noqa: BLE001  a pickle can raise anything
            _log_once(f"compiling a kernel again, {file} cannot be used: {error!r}")
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Write a new file, which replaces a bad one and that of a process that was quicker."""
        file = self._file(signature, result.library.codegen)
        try:
            if not result.library.has_dynamic_globals:  # addresses of this process
                self._write(file, dumps(result._reduce()))
        finally:
            self._end_turn(file)

    def _write(self, file: Path, payload: bytes) -> None:
        try:
            self._make_folder()
            descriptor, part = tempfile.mkstemp(dir=self._folder, suffix=".part")
            try:
                with open(descriptor, "wb") as opened:
                    opened.write(sealed(payload, file))
                os.replace(part, file)
            finally:
                Path(part).unlink(missing_ok=True)
        except OSError:
            _log_once(
                f"no file can be written below {user_cache()}: kernels are compiled in each process"
            )

    def _make_folder(self) -> None:
        if not self._folder.is_dir():
            _remove_unused(self._folder.parent)
            self._folder.mkdir(parents=True, exist_ok=True)

    def _take_turn(self, file: Path) -> None:
        """Wait while another process compiles the kernel of this file.

        Whoever compiles it holds a lock, which ends with the process. Kernels compile those that
        they call while they hold theirs; as none calls itself, no two processes wait for each
        other.
        """
        if fcntl is None or not KernelCache.waits:
            return
        try:
            self._make_folder()
            turn = file.with_suffix(".turn").open("wb")
        except OSError:  # told when the kernel is written
            return

        # whoever has waited finds the file, or that the other one could not write it
        give_up = time.monotonic() + LONGEST_WAIT
        has_waited = False
        while KernelCache.waits and not _lock(turn):
            has_waited = True
            time.sleep(_POLL)
            if time.monotonic() > give_up:
                KernelCache.waits = False
                _log_once(f"another process compiles {file.name} for long, so this one does too")
        if has_waited:
            turn.close()
        else:
            self._turns[file] = turn

    def _end_turn(self, file: Path) -> None:
        turn = self._turns.pop(file, None)
        if turn is not None:
            with contextlib.suppress(OSError):
                file.with_suffix(".turn").unlink()
            turn.close()

    def enable(self) -> None:
        """Do nothing: always enabled."""

    def disable(self) -> None:
        """Do nothing: always enabled."""

    def flush(self) -> None:
        """Remove the kernel's files."""
        for file in self._folder.glob(f"{self._name}-*.nbc"):
            file.unlink(missing_ok=True)

    def _file(self, signature: Any, codegen: Any) -> Path:
        fields = [list(_fields(kind)) for kind in getattr(signature, "args", signature)]
        key = hashlib.sha256(repr((signature, fields, codegen.magic_tuple())).encode()).hexdigest()
        return self._folder / f"{self._name}-{key[:16]}.nbc"


def _fields(kind: Any) -> Iterator[tuple[str, ...]]:
    """Yield the names of the fields of each record in a type.

    A type's text has the fields' types alone, and a module need not import the records that its
    kernels take.
    """
    if isinstance(kind, types.NamedTuple | types.NamedUniTuple):
        yield kind.instance_class._fields
    if isinstance(kind, types.Tuple | types.UniTuple | types.NamedTuple | types.NamedUniTuple):
        for part in kind:
            yield from _fields(part)


def sealed(payload: bytes, file: Path) -> bytes:
    """Return the content of this file: magic word, length, hash, payload."""
    length = len(payload).to_bytes(_LENGTH_BYTES, "little")
    name = f"{file.parent.name}/{file.name}\n".encode()
    return MAGIC + length + hashlib.sha256(name + payload).digest() + payload


def unsealed(content: bytes, file: Path) -> bytes:
    """Return the payload of a content. Raise ValueError if it is not what was written to `file`."""
    start = len(MAGIC) + _LENGTH_BYTES + _HASH_BYTES
    payload = content[start:]
    if sealed(payload, file) != content:
        raise ValueError("length or hash do not match")
    return payload


def _lock(turn: BinaryIO) -> bool:
    """Return whether a file is locked now; False while another process has locked it."""
    try:
        fcntl.lockf(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None


@functools.cache
def _folder(module: str, file: Path) -> Path:
    versions = (sys.version, np.__version__, numba.__version__, llvmlite.__version__)
    stamp = hashlib.sha256(repr((digest(source_files(file)), versions)).encode()).hexdigest()
    folder = user_cache() / "rfly_suite" / "kernels" / f"{module}-{stamp[:16]}"
    with contextlib.suppress(OSError):  # it does not exist yet, or belongs to another user
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
