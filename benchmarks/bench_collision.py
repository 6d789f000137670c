# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Contacts of tumbling boxes, against coal's dynamic tree in C++ and NumPy on all pairs.

coal is optional (`pip install libcoal cmeel-eigen`) and needs g++; its rows are left out without.
"""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.bench_rays import one_core
from benchmarks.cpp import compiled, cpp_call
from benchmarks.harness import Row, measure, same
from rfly_collision import Bodies, Box, Scene
from rfly_collision.world.scene import warm_up
from rfly_common.kernels.parallel import cores

SIZE = (4.0, 2.0, 1.5)
"""Size of every box, m."""
COUNT = 10_000
FEW = 2_000
DT = 0.02
"""Length of the swept steps in the notes, s."""
TURNS = 6
"""Number of poses that the sides use in turn, so that all boxes move in every step."""
SPARSE = (1_000.0, 1_000.0, 50.0)
DENSE = (200.0, 200.0, 50.0)
COAL = "coal 3 in C++, dynamic tree"


def rows() -> Iterator[Row]:
    """Yield all rows whose peers are installed."""
    warm_up()
    if coal_prefix() is None or shutil.which("g++") is None:
        print(
            "collision: no rows with coal (pip install libcoal cmeel-eigen, g++)", file=sys.stderr
        )
    else:
        yield from compared_with_coal("sparse, 1 km², 50 m high", SPARSE, 200)
        yield from compared_with_coal("dense, 200 x 200 x 50 m", DENSE, 50)
    yield compared_with_numpy()


class Boxes:
    """Boxes that move and tumble, at several moments one after the other."""

    def __init__(self, count: int, room: tuple[float, float, float]) -> None:
        rng = np.random.default_rng(5)
        self.position = rng.uniform(0, 1, (count, 3)) * room
        self.velocity = rng.normal(0, 10, (count, 3))
        self.spin = rng.normal(0, 1, (count, 3))
        quat = rng.normal(size=(count, 4))
        self.quat = quat / np.linalg.norm(quat, axis=1, keepdims=True)
        self.moments = [self._at(k * DT) for k in range(TURNS)]
        self._turn = itertools.count()

    def _at(self, time: float) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return positions and quaternions at a time, s."""
        from scipy.spatial.transform import Rotation

        turned = Rotation.from_quat(self.quat) * Rotation.from_rotvec(self.spin * time)
        return self.position + self.velocity * time, turned.as_quat()

    def next(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return positions (n, 3) and quaternions (n, 4) of the next moment."""
        return self.moments[next(self._turn) % TURNS]


def ours_of(boxes: Boxes) -> Any:
    """Return our step: bodies from the poses of the moment, and all contacts."""
    scene = Scene()
    shapes = (Box(SIZE),)
    index = np.zeros(len(boxes.position), np.int64)

    def step(dt: float = 0.0) -> Any:
        return scene.contacts(Bodies(shapes, index, *boxes.next(), boxes.velocity, boxes.spin), dt)

    return step


class Coal:
    """coal, the successor of FCL, in C++ (`coal_boxes.cpp`): the fastest way to use it.

    Its Python takes 3 ms a thousand boxes to set the transforms alone.
    """

    def __init__(self, boxes: Boxes) -> None:
        self.boxes = boxes
        library = compiled("coal_boxes", options=coal_options())
        library.new_boxes.restype = ctypes.c_void_p
        library.contacts_of.restype = ctypes.c_int64
        self._contacts_of = library.contacts_of
        count = len(boxes.position)
        scene = ctypes.c_void_p(cpp_call(library.new_boxes, count, np.array(SIZE))())
        self._most = 4 * count
        self._pairs = np.empty((self._most, 2), np.int64)
        self._places = np.empty((self._most, 7))
        self._scene = scene

    def step(self) -> NDArray[Any]:
        """Return the pairs of boxes that touch at the next moment, (m, 2).

        Points, normals and depths of the contacts are computed too.
        """
        count = self._contacts_of(
            self._scene,
            *map(address, self.boxes.next()),
            address(self._pairs),
            address(self._places),
            ctypes.c_int64(self._most),
        )
        return self._pairs[:count]

    def pairs(self, touching: NDArray[Any]) -> set[tuple[int, int]]:
        """Return the numbers of the boxes in each contact."""
        return set(map(tuple, np.sort(touching, axis=1).tolist()))


def address(array: NDArray[Any]) -> ctypes.c_void_p:
    """Return an array as C++ takes it."""
    return ctypes.c_void_p(array.ctypes.data)


def coal_prefix() -> Path | None:
    """Return the folder of coal's headers and libraries, None if its wheels are not installed."""
    package = importlib.util.find_spec("cmeel")
    prefix = Path(package.origin).parent.parent / "cmeel.prefix" if package else Path()  # type: ignore[arg-type]
    return prefix if (prefix / "include/coal").is_dir() else None


def coal_options() -> list[str]:
    """Return the compiler's options for coal's headers and library."""
    prefix = coal_prefix()
    folders = [f"-I{prefix}/include", f"-I{prefix}/include/eigen3"]
    return [*folders, f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", "-lcoal"]


def pairs_of(contacts: Any) -> set[tuple[int, int]]:
    """Return the numbers of the boxes in each of our contacts."""
    return set(zip(contacts.a.tolist(), contacts.b.tolist(), strict=True))


def compared_with_coal(
    name: str, room: tuple[float, float, float], least_per_s: float
) -> Iterator[Row]:
    """Compare with coal on all cores and on one.

    The note names `least_per_s`, our target in steps per second.
    """
    ours = ours_of(Boxes(COUNT, room))
    theirs = Coal(Boxes(COUNT, room))
    touching = []
    expected = []

    for _ in range(TURNS):
        touching.append(pairs_of(ours()))
        expected.append(theirs.pairs(theirs.step()))

    count = sum(map(len, touching)) // TURNS
    agree = same(touching == expected, f"pairs that touch, at {TURNS} moments, {count:,} each")

    seconds, peer = measure(ours, theirs.step, 9, ours_calls=TURNS, peer_calls=TURNS)
    swept, _ = measure(lambda: ours(DT), lambda: None, 5)
    rate = 1 / seconds
    rating = f"{rate:.0f} steps/s, {'met' if rate >= least_per_s else 'MISSED'}: >= {least_per_s:g}"
    swept_rate = f"with times of impact over {DT} s {1 / swept:.0f} steps/s"
    note = f"{rating}; {swept_rate}; {threads()}, coal one thread"
    yield Row(f"{COUNT:,} boxes, {name}", seconds, peer, COAL, 1, None, agree, note)

    with one_core():
        seconds, peer = measure(ours, theirs.step, 9, ours_calls=TURNS, peer_calls=TURNS)
    note = f"{1 / seconds:.0f} steps/s; one core each"
    yield Row(f"{COUNT:,} boxes, {name}, one core", seconds, peer, COAL, 1, None, agree, note)


def compared_with_numpy() -> Row:
    """Compare with all pairs by whole arrays of NumPy."""
    boxes = Boxes(FEW, SPARSE)
    same_boxes = Boxes(FEW, SPARSE)
    ours = ours_of(boxes)
    touching = []
    expected = []

    for _ in range(TURNS):
        touching.append(pairs_of(ours()))
        expected.append(all_pairs(*same_boxes.next()))

    agree = same(
        touching == expected,
        f"pairs that touch, at {TURNS} moments, {sum(map(len, touching))} in all",
    )
    seconds, peer = measure(ours, lambda: all_pairs(*same_boxes.next()), 7, ours_calls=2 * TURNS)
    note = f"{1 / seconds:.0f} steps/s, position, normal and depth too; {threads()}"

    return Row(
        f"{FEW:,} boxes, sparse",
        seconds,
        peer,
        "NumPy, all pairs, pairs alone",
        50,
        None,
        agree,
        note,
    )


def threads() -> str:
    """Return the text on our threads."""
    return f"ours {min(cores(), 16)} threads for more than 512 pairs, else one"


def all_pairs(position: NDArray[Any], quat: NDArray[Any]) -> set[tuple[int, int]]:
    """Return all pairs of boxes that touch, by whole arrays.

    Axis-aligned bounds come first, then the 15 separating axes of the pairs whose bounds overlap.
    """
    x, y, z, w = quat.T
    rotation = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    ).transpose(2, 0, 1)

    # bounds that overlap on each axis
    half = np.array(SIZE) / 2
    reach = np.abs(rotation) @ half
    low = position - reach
    high = position + reach
    near = low[:, None, 0] <= high[:, 0]
    near &= near.T

    for axis in (1, 2):
        along = low[:, None, axis] <= high[:, axis]
        near &= along
        near &= along.T

    # the 15 axes of their pairs
    a, b = np.nonzero(np.triu(near, 1))
    between = position[b] - position[a]
    first = rotation[a]
    second = rotation[b]
    crosses = np.cross(first[:, :, :, None], second[:, :, None, :], axis=1).reshape(len(a), 3, 9)
    axes = np.concatenate([first, second, crosses], axis=2)
    gap = np.abs(np.einsum("ni,nik->nk", between, axes))

    for turned in (first, second):
        gap -= np.einsum("j,njk->nk", half, np.abs(np.einsum("nij,nik->njk", turned, axes)))

    touching = (gap <= 0).all(axis=1)
    return set(zip(a[touching].tolist(), b[touching].tolist(), strict=True))
