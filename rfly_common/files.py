# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""File paths, limits of sizes, and the one way in which files are opened for reading."""

from __future__ import annotations

import abc
import errno
import os
import re
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from rfly_common.errors import ConfigError, RflyError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Self

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

StrPath = str | os.PathLike[str]


MAX_CELLS = 100_000_000
"""Rows x columns of the largest map, 10,000 x 10,000: 400 MB of heights."""

_KNOWN_ENDING = re.compile(
    r"\.(asc|bmp|bt|csv|db3|gif|hgt|jpe?g|json|lua|mat|mcap|np[yz]|onnx|osm|params?|parm|parquet|"
    r"pcap(ng)?|pcd|pdf|pgm|plan|ply|png|px4|sdf|svg|tiff?|urdf|waypoints|webp|xlsx|xml|xyz|ya?ml|"
    r"zip)"
)
"""Endings that say what a file holds, of kinds that the commands read or write or users expect."""

_FLAGS = sum(
    getattr(os, name, 0) for name in ("O_RDONLY", "O_BINARY", "O_CLOEXEC", "O_NOCTTY", "O_NONBLOCK")
)


def open_regular(path: StrPath, max_bytes: int | None = None) -> BinaryIO:
    """Open a regular file for reading bytes, without ever waiting as for a pipe or a device.

    Raises OSError, whose strerror gives the reason, if the file cannot be opened, is not a regular
    file or is larger than max_bytes.
    """
    try:
        descriptor = os.open(path, _FLAGS)
    except ValueError as error:  # a NUL or half a character in the name
        raise OSError(errno.EINVAL, f"no name of a file ({error})", os.fspath(path)) from None

    status = os.fstat(descriptor)
    number = 0
    problem = ""
    if stat.S_ISDIR(status.st_mode):
        number = errno.EISDIR
        problem = os.strerror(errno.EISDIR)
    elif not stat.S_ISREG(status.st_mode):
        number = errno.EINVAL
        problem = "a pipe, a socket or a device, expected a regular file"
    elif max_bytes is not None and status.st_size > max_bytes:
        number = errno.EFBIG
        problem = f"larger than {max_bytes:,} bytes"

    if problem:
        os.close(descriptor)
        raise OSError(number, problem, os.fspath(path))

    return os.fdopen(descriptor, "rb")


def read_regular(path: StrPath, max_bytes: int) -> bytes:
    """Return the content of a regular file.

    Raises OSError as `open_regular` does, also if the file grows meanwhile.
    """
    with open_regular(path, max_bytes) as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise OSError(errno.EFBIG, f"larger than {max_bytes:,} bytes", os.fspath(path))
    return data


def check_folder(path: StrPath) -> None:
    """Raise ConfigError where no file of this name can be made: no folder, or no permission."""
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise ConfigError(f"{path}: there is no folder {folder}")
    # a device, such as /dev/stdout, is there already
    if not os.path.exists(path) and not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"{path}: no permission to write in the folder {folder}")


def check_ending(path: StrPath, *endings: str, hint: str = "") -> None:
    """Raise ConfigError for a name with the ending of another kind of file than `endings` are.

    Case does not count. A name without an ending, or with an unknown one, may hold anything.
    """
    ending = Path(path).suffix.lower()
    if _KNOWN_ENDING.fullmatch(ending) and ending not in endings:
        raise ConfigError(f"{path}: expected a name that ends in {' or '.join(endings)}{hint}")


def with_ending(path: StrPath, *endings: str) -> Path:
    """Return a path that has one of the endings, by appending the first where it has none of them.

    "site.v2" keeps its whole name. Raises ConfigError as `check_ending` does.
    """
    check_ending(path, *endings)
    file = Path(path)
    return file if file.suffix.lower() in endings else file.with_name(file.name + endings[0])


def write_text(path: StrPath, text: str) -> None:
    """Write a text file in UTF-8; see `write_whole`."""
    write_whole(path, text.encode())


def write_whole(path: StrPath, data: bytes) -> None:
    """Write a file, so that it is there whole or not at all; see `open_whole`."""
    with open_whole(path) as file:
        file.write(data)


def write_array(path: StrPath, array: NDArray[Any]) -> None:
    """Write an .npy file whole.

    NumPy itself writes to a file past Python, and loses the last bytes on a full disk in silence.
    """
    import numpy as np

    whole = np.asarray(array, order="C")
    with open_whole(path) as file:
        header = np.lib.format.header_data_from_array_1_0(whole)
        np.lib.format.write_array_header_1_0(file, header)
        file.write(whole.reshape(-1).view(np.uint8).data)


def encoded_picture(form: str, pixels: NDArray[Any], options: Sequence[int] = ()) -> bytes:
    """Return pixels (rows, columns[, 3]) as a file of the form png, jpg or pgm; colours are BGR.

    `options` are OpenCV's flags and their values. Raise ConfigError for no pixel, and for more than
    the form holds.
    """
    import cv2

    if pixels.size == 0:
        raise ConfigError(f"pixels of shape {pixels.shape}, expected at least one in a {form}")
    done, content = cv2.imencode(f".{form}", pixels, options)
    if not done:
        rows, columns = pixels.shape[:2]
        most = {"png": "1,000,000", "jpg": "65,500"}.get(form, "fewer")
        raise ConfigError(
            f"{rows} rows x {columns} columns, expected at most {most} each in a {form}"
        )
    return content.tobytes()


@contextmanager
def open_whole(path: StrPath) -> Iterator[BinaryIO]:
    """Open a file for writing bytes; it takes the place of an old one at the end of the block.

    If the block raises or the process is killed, the old file stays, or none. The new file has the
    old one's permissions. A link is followed; a device or a pipe, such as /dev/stdout, is written
    directly. Raises OSError, with the name of the target, also for a pipe without a reader.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb", opener=_open_at_once) as stream:
            yield stream
        return

    # several threads may write the same file
    target = Path(os.path.realpath(path))
    part = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        permissions = _permissions(target)
        with part.open("wb") as file:
            if permissions is not None and permissions != _permissions(part):
                os.chmod(part, permissions)
            yield file
        os.replace(part, target)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, RflyError) or not isinstance(error, OSError):
            raise
        if error.filename in (None, str(part)):
            # the user named the target, not the part; NumPy and Pillow give a text alone
            number = error.errno or errno.EIO
            raise OSError(number, error.strerror or str(error), str(target)) from error
        raise


def _open_at_once(path: str, flags: int) -> int:
    """Open a pipe or a device for writing, without waiting for a reader."""
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))
    if fcntl is not None:
        os.set_blocking(descriptor, True)
    return descriptor


def _permissions(path: Path) -> int | None:
    """Return the permissions of a file, None if there is none.

    Raises OSError if it may not be written: to replace it takes only the permission for its folder.
    """
    if not path.exists():
        return None
    with path.open("ab") as file:
        return stat.S_IMODE(os.fstat(file.fileno()).st_mode)


@contextmanager
def sole_writer(folder: StrPath, *, waits: bool) -> Iterator[None]:
    """Lock a folder against other writers, where the system can; a kill unlocks it.

    waits: wait for another writer's end; otherwise FileExistsError is raised.
    """
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FileExistsError(f"{folder}: another process is writing there") from None
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(descriptor)


class Closing(abc.ABC):
    """Base of objects that a `with` block closes at its end."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @abc.abstractmethod
    def close(self) -> None:
        """Release files, sockets and threads."""
