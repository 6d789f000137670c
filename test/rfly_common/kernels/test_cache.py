# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Cache of compiled kernels: never old code, one for all checkouts, damaged files, no folder."""

from __future__ import annotations

import importlib
import os
import pickle
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from marks import exhaustively

import rfly_common
from rfly_common.kernels.cache import sealed, unsealed
from rfly_common.kernels.sources import PACKAGES, digest_of_kernels, source_files

OUTER = """
from rfly_common.kernels.jit import kernel
from rfly_example.inner import twice

@kernel
def outer(x):
    return twice(x) + 1.0
"""
INNER = """
from rfly_common.kernels.jit import inner_kernel
from rfly_example.table import FACTOR

@inner_kernel
def twice(x):
    return FACTOR * x
"""
CALL = """
import logging
logging.basicConfig(level=logging.INFO, format="%(message)s")
from rfly_common.kernels.compiling import on_compile
from rfly_example.outer import outer
with on_compile(lambda name: print(name, end=" ")):
    results = outer(5.0), outer(5)
print(*results, sum(outer.stats.cache_hits.values()))
"""
ACROSS = """
from rfly_common.kernels.jit import kernel

@kernel
def across(place):
    return place.x - place.y

@kernel
def across_all(places):
    return places[0].x - places[0].y
"""
PLACE = """
from collections import namedtuple
Place = namedtuple("Place", "{}")
"""
CALL_ACROSS = """
from rfly_example.across import across, across_all
from rfly_example.table import Place
place = Place(x=5.0, y=2.0)
print(across(place), across_all((place, place)))
"""


class Checkout:
    """A copy of `rfly_common` with a package of two kernels, and a user's cache."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder = folder / "rfly_example"

        # nothing but this folder and this cache
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            "NUMBA_CACHE_DIR": "",
            **dict.fromkeys(("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"), str(cache)),
        }

        # with its byte code, which each process would make anew; others may be writing theirs
        shutil.copytree(
            PACKAGES / "rfly_common",
            folder / "rfly_common",
            ignore=shutil.ignore_patterns("*.pyc.*"),
        )
        self.folder.mkdir()
        for name, text in (("outer", OUTER), ("inner", INNER), ("table", "FACTOR = 2.0\n")):
            (self.folder / f"{name}.py").write_text(text)

    def start(self, code: str = CALL, stdin: int | None = None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=self.folder,
            env=self._environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self) -> str:
        """The results for a float and an int, and how many signatures came from the cache.

        `compiled` has the names of the kernels that were not in it.
        """
        process = self.start()
        out, self.log = process.communicate(timeout=120)
        assert process.returncode == 0, self.log
        *self.compiled, float_result, int_result, hits = out.split()
        return f"{float_result} {int_result} {hits}"


def test_a_changed_inner_kernel_is_compiled_and_the_old_one_found_again(tmp_path):
    checkout = Checkout(tmp_path / "one", tmp_path / "cache")
    assert checkout.call() == "11.0 11.0 0"
    assert checkout.compiled == ["outer", "twice", "outer", "twice"]  # for a float, and an int
    assert checkout.call() == "11.0 11.0 2"
    assert checkout.compiled == []
    inner = checkout.folder / "inner.py"
    inner.write_text(INNER.replace("FACTOR * x", "FACTOR + x"))
    assert checkout.call() == "8.0 8.0 0"
    inner.write_text(INNER)
    (checkout.folder / "table.py").write_text("FACTOR = 3.0\n")
    assert checkout.call() == "16.0 16.0 0"
    (checkout.folder / "table.py").write_text("FACTOR = 2.0\n")
    assert checkout.call() == "11.0 11.0 2"
    # another checkout of the same sources compiles nothing
    assert Checkout(tmp_path / "two", tmp_path / "cache").call() == "11.0 11.0 2"


def test_a_record_whose_fields_change_places_is_read_right(tmp_path):
    """The kernel's module imports no record, so that its stamp stays; both fields are numbers."""
    checkout = Checkout(tmp_path / "one", tmp_path / "cache")
    (checkout.folder / "across.py").write_text(ACROSS)
    for fields in ("x y", "y x"):
        (checkout.folder / "table.py").write_text(PLACE.format(fields))
        out, log = checkout.start(CALL_ACROSS).communicate(timeout=120)
        assert out == "3.0 3.0\n", log


def test_processes_that_start_together_compile_each_kernel_once(tmp_path):
    checkout = Checkout(tmp_path / "one", tmp_path / "cache")
    processes = [checkout.start() for _ in range(3)]
    ends = [process.communicate(timeout=300)[0].split() for process in processes]
    assert [end[-3:-1] for end in ends] == 3 * [["11.0", "11.0"]]
    compiled = [name for end in ends for name in end[:-3]]
    assert sorted(compiled) == ["outer", "outer", "twice", "twice"]  # for a float, and an int
    assert checkout.call() == "11.0 11.0 2"
    files = (tmp_path / "cache").rglob("*")
    assert {file.suffix for file in files if file.is_file()} == {".nbc"}


HOLD = """
import numba
from rfly_example.outer import outer
try:
    outer("no number")
except numba.TypingError:
    print("holds", flush=True)
input()
"""
WAIT = """
import logging
logging.basicConfig(level=logging.INFO, format="%(message)s")
import numba
import rfly_common.kernels.cache as cache
cache.LONGEST_WAIT = 0.1
from rfly_example.outer import outer
try:
    outer("no number")
except numba.TypingError:
    print("refused", outer(5.0))
"""


@pytest.mark.exhaustive
def test_a_process_that_stands_while_it_compiles_is_waited_for_once(tmp_path):
    """It tried a kernel that can't be compiled, and keeps the lock as long as it lives."""
    checkout = Checkout(tmp_path / "one", tmp_path / "cache")
    stands = checkout.start(HOLD, stdin=subprocess.PIPE)
    assert stands.stdout.readline() == "holds\n"
    out, log = checkout.start(WAIT).communicate(timeout=120)
    assert out == "refused 11.0\n"
    assert log.count("for long, so this one does too") == 1
    stands.communicate("\n", timeout=120)


def test_numbas_own_compiled_parts_work_beside_kernels():
    """A loop that numba lifts out of a plain function has no cache."""
    import numba

    import rfly_common.kernels.jit  # noqa: F401  listens to numba

    @numba.jit(forceobj=True)
    def total(numbers):
        result = 0.0
        for number in numbers:
            result += number
        return result

    assert total([1.0, 2.5]) == 3.5


@pytest.mark.exhaustive
def test_a_killed_process_leaves_its_kernel_to_others(tmp_path):
    """It was killed while it held the lock of a kernel that it never wrote."""
    checkout = Checkout(tmp_path / "one", tmp_path / "cache")
    assert checkout.call() == "11.0 11.0 0"
    for file in list((tmp_path / "cache").rglob("*.nbc")):
        file.rename(file.with_suffix(".turn"))
    assert checkout.call() == "11.0 11.0 0"
    assert not list((tmp_path / "cache").rglob("*.turn"))


def test_where_no_file_can_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    checkout = Checkout(tmp_path / "one", tmp_path / "file")
    assert checkout.call() == "11.0 11.0 0"
    assert checkout.log.count("kernels are compiled in each process") == 1


FULL_DISK = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
from rfly_example.outer import outer
print(outer(5.0))
"""


def test_a_full_disk_keeps_no_part_of_a_file(tmp_path):
    checkout = Checkout(tmp_path / "one", tmp_path / "cache")
    out, log = checkout.start(FULL_DISK).communicate(timeout=120)
    assert out == "11.0\n", log
    assert not [file for file in (tmp_path / "cache").rglob("*") if file.is_file()]


def test_unused_folders_are_removed(tmp_path):
    checkout = Checkout(tmp_path / "one", tmp_path / "cache")
    kernels = tmp_path / "cache" / "rfly_suite" / "kernels"
    for name, days in (("old", 31), ("used", 29)):
        (kernels / f"rfly_example.outer-{name}").mkdir(parents=True)
        os.utime(kernels / f"rfly_example.outer-{name}", 2 * (time.time() - days * 86400,))
    assert checkout.call() == "11.0 11.0 0"
    assert len(list(kernels.iterdir())) == 2


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A checkout with its kernels in the cache, their files, and these files' contents."""
    folder = tmp_path_factory.mktemp("compiled")
    checkout = Checkout(folder / "one", folder / "cache")
    assert checkout.call() == "11.0 11.0 0"
    files = sorted((folder / "cache").glob("rfly_suite/kernels/*/*.nbc"))
    return checkout, files, [file.read_bytes() for file in files]


def flip_a_bit(content: bytes, _: list[Path]) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        flip_a_bit,
        exhaustively(lambda content, _: content[:100]),
        exhaustively(lambda content, _: content[:-1]),
        exhaustively(lambda content, _: content + b"\0"),
        exhaustively(lambda *_: b""),
        exhaustively(lambda _, files: files[1].read_bytes()),
        exhaustively(lambda _, files: sealed(b"no pickle", files[0])),
        lambda _, files: sealed(pickle.dumps(("no", "compile result")), files[0]),
    ],
    ids=[
        *("flipped", "truncated", "last byte", "longer", "empty"),
        *("another kernel's", "no pickle", "other pickle"),
    ],
)
def test_a_bad_file_is_logged_and_replaced(compiled, damage):
    checkout, files, sound = compiled
    for file, content in zip(files, sound, strict=True):
        file.write_bytes(content)
    files[0].write_bytes(damage(sound[0], files))

    assert checkout.call() == "11.0 11.0 1"
    assert checkout.log.count("cannot be used") == 1
    assert str(files[0]) in checkout.log
    assert sorted(files[0].parents[2].glob("kernels/*/*.nbc")) == files
    assert unsealed(files[0].read_bytes(), files[0])


def test_a_replaced_file_is_used(compiled):
    checkout, files, _ = compiled
    files[0].write_bytes(b"")
    assert checkout.call() == "11.0 11.0 1"
    assert checkout.call() == "11.0 11.0 2"


def test_what_was_sealed_is_unsealed():
    file = Path("kernels") / "module-1" / "twice.nbc"
    assert unsealed(sealed(b"", file), file) == b""
    assert unsealed(sealed(b"machine code", file), file) == b"machine code"
    with pytest.raises(ValueError, match="length or hash"):
        unsealed(b"machine code", file)
    for other in (file.with_name("thrice.nbc"), Path("kernels") / "module-2" / "twice.nbc"):
        with pytest.raises(ValueError, match="length or hash"):
            unsealed(sealed(b"machine code", file), other)


def in_suite(file):
    """A kernel from the cache bears the path of the checkout that compiled it."""
    parts = Path(file).parts
    return parts[
        max(
            k
            for k, part in enumerate(parts)
            if part.startswith("rfly_") and (PACKAGES / part).is_dir()
        ) :
    ]


def test_source_files_hold_all_that_kernels_refer_to():
    """Whatever a kernel of the suite calls comes from a file that its stamp covers."""
    modules = (
        "rfly_amphibious.dynamics.stepping",
        "rfly_autonomy.estimation.filter_kernels",
        "rfly_collision.narrow_phase.terrain_contact",
        "rfly_terrain.planning.search_kernels",
    )

    for name in modules:
        module = importlib.import_module(name)
        covered = {
            in_suite(file) for file in source_files(PACKAGES / f"{name.replace('.', '/')}.py")
        }
        waiting = [value for value in vars(module).values() if hasattr(value, "py_func")]
        seen = set()
        while waiting:
            function = waiting.pop().py_func
            assert in_suite(function.__code__.co_filename) in covered, function
            seen.add(function)
            named = (function.__globals__.get(part) for part in function.__code__.co_names)
            waiting += [
                value for value in named if hasattr(value, "py_func") and value.py_func not in seen
            ]
        assert len(seen) > 5


def test_an_error_text_of_map_files_changes_no_stamp_of_the_plant():
    """Maps are known there as types alone, which no kernel is compiled from."""
    stepping = source_files(PACKAGES / "rfly_amphibious/dynamics/stepping.py")
    assert PACKAGES / "rfly_terrain/height_map/bilinear.py" in stepping
    assert PACKAGES / "rfly_terrain/map_files/calibration.py" not in stepping


def test_digest_of_kernels_changes_with_an_inner_kernel_only(tmp_path):
    """The digest is what the set-up compares before it compiles."""
    for package in ("rfly_common", "rfly_terrain"):
        shutil.copytree(
            PACKAGES / package,
            tmp_path / package,
            ignore=shutil.ignore_patterns("__pycache__", "maps"),
        )

    def digest() -> str:
        code = (
            "from rfly_common.kernels.sources import digest_of_kernels; print(digest_of_kernels())"
        )
        command = [sys.executable, "-S", "-c", code]  # no third-party package
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout

    before = digest()
    assert before.strip() != digest_of_kernels()  # of all packages
    for name, same in (
        ("rfly_terrain/planning/planner.py", True),
        ("rfly_terrain/planning/cost_kernels.py", False),
    ):
        (tmp_path / name).write_text((tmp_path / name).read_text() + "\n# edited\n")
        assert (digest() == before) == same, name


def test_sources_are_those_of_this_tree():
    assert Path(rfly_common.__file__).parent.parent == PACKAGES
