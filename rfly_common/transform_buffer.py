# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Transform buffer: the part of tf2 that the nodes need, without ROS.

Transforms are kept for ten seconds before the newest of their frame, static ones for ever. Within
that time a look-up interpolates (position linearly, rotation by slerp). Later than the newest it
returns the newest, because poses usually overtake their transforms by some milliseconds. Earlier
than the oldest it fails. A frame that has fallen silent, such as that of a removed vehicle, keeps
its newest transform only, and is forgotten in the end.
"""

from __future__ import annotations

import bisect
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats
from rfly_common.errors import FrameError, TransformTreeError
from rfly_common.frames import (
    QUAT_ENU_NED_XYZW,
    Array,
    ned_to_enu,
    quat_conjugate,
    quat_multiply,
    quat_rotate,
)
from rfly_common.state_sources import StampFilter

WORLD = "map"
"""Name of the world frame, ENU (REP 105)."""
KEEP_NS = 10_000_000_000
"""Time before the newest transform of a frame that is kept, ns."""
MAX_SAMPLES_PER_FRAME = 10_000
MAX_FRAMES = 10_000
MAX_CHAIN = 1_000
"""Transforms between a frame and the root of its tree, as in tf2."""
NORM_TOLERANCE = 0.01
"""Difference of a quaternion's squared norm from 1 that is accepted, as in tf2."""
SILENT_S = 10.0
"""Wall time without a transform after which a moving frame keeps its newest one only, s."""
GONE_S = 600.0
"""Wall time without a transform after which a moving frame is forgotten, s."""


@dataclass(frozen=True, eq=False)
class Transform:
    """Conversion of coordinates given in a child frame into its parent.

    p_parent = rotate(quat_xyzw, p_child) + translation
    """

    translation: Array
    quat_xyzw: Array

    def __matmul__(self, inner: Transform) -> Transform:
        """Return the transform that applies `inner` first, then this one."""
        return Transform(
            quat_rotate(self.quat_xyzw, inner.translation) + self.translation,
            quat_multiply(self.quat_xyzw, inner.quat_xyzw),
        )

    def inverse(self) -> Transform:
        """Return the transform of parent coordinates into the child's."""
        back = quat_conjugate(self.quat_xyzw)
        return Transform(-quat_rotate(back, self.translation), back)


IDENTITY = Transform(np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]))
VERTICAL_TOLERANCE = 1e-6
"""Horizontal part of a unit vector that counts as vertical."""


@dataclass(frozen=True, eq=False)
class FrameToWorld:
    """Conversion of coordinates given in a frame to the world.

    It applies `transform` and then converts from `axes` (enu or ned).
    """

    axes: str
    transform: Transform = IDENTITY
    is_world: bool = True
    """True if the frame is a world frame itself and `transform` changes nothing."""

    @property
    def motion(self) -> tuple[ArrayLike | None, ArrayLike | None]:
        """Translation (3,), m, and quaternion x y z w (4,) to the world; None in a world frame."""
        transform = self.transform
        return (None, None) if self.is_world else (transform.translation, transform.quat_xyzw)

    def vectors_to_enu(self, vectors: ArrayLike) -> Floats:
        """Convert (..., 3) directions in the frame to ENU."""
        turned = (
            np.asarray(vectors, float)
            if self.is_world
            else quat_rotate(self.transform.quat_xyzw, vectors)
        )
        return np.asarray(ned_to_enu(turned) if self.axes == "ned" else turned)

    def points_to_enu(self, points: ArrayLike) -> Floats:
        """Convert (..., 3) points in the frame to ENU, m."""
        moved = np.asarray(points, float)
        if not self.is_world:
            moved = quat_rotate(self.transform.quat_xyzw, moved) + self.transform.translation
        return np.asarray(ned_to_enu(moved) if self.axes == "ned" else moved)

    def quats_to_enu(self, quat_xyzw: ArrayLike) -> Floats:
        """Convert (..., 4) orientations FLU -> frame to FLU -> ENU."""
        turned = np.asarray(quat_xyzw, float)
        if not self.is_world:
            turned = quat_multiply(self.transform.quat_xyzw, turned)
        return np.asarray(
            quat_multiply(QUAT_ENU_NED_XYZW, turned) if self.axes == "ned" else turned
        )

    def poses_from_enu(self, position: ArrayLike, quat_xyzw: ArrayLike) -> tuple[Floats, Floats]:
        """Convert (..., 3) positions ENU, m, and (..., 4) orientations FLU -> ENU to the frame."""
        moved = np.asarray(position, float)
        turned = np.asarray(quat_xyzw, float)
        if self.axes == "ned":
            moved = np.asarray(ned_to_enu(moved)) + 0.0
            turned = quat_multiply(QUAT_ENU_NED_XYZW, turned)
        if not self.is_world:
            back = quat_conjugate(self.transform.quat_xyzw)
            moved = quat_rotate(back, moved - self.transform.translation)
            turned = quat_multiply(back, turned)
        return np.asarray(moved), np.asarray(turned)

    def check_vertical(self, name: str) -> float:
        """Return 1 if the frame's z axis points along its world's, -1 if against it.

        Raises FrameError if it is not vertical.
        """
        x, y, z = quat_rotate(self.transform.quat_xyzw, (0.0, 0.0, 1.0)).tolist()
        if math.hypot(x, y) > VERTICAL_TOLERANCE:
            raise FrameError(
                f"frame {name!r}: its z axis is not vertical, "
                "so x and y alone name no point of the ground"
            )
        return math.copysign(1.0, z)


@dataclass
class _Edge:
    parent: str
    static: bool
    stamps_ns: list[int] = field(default_factory=list)
    transforms: list[Transform] = field(default_factory=list)
    heard_at: float = 0.0
    """Wall time of the newest transform, s."""

    def add(self, stamp_ns: int, transform: Transform, keep_ns: int) -> None:
        if self.static:
            self.stamps_ns = [0]
            self.transforms = [transform]
            return

        # the clock jumped back: a new run has begun
        if self.stamps_ns and stamp_ns < self.stamps_ns[-1] - keep_ns:
            self.stamps_ns = []
            self.transforms = []

        index = bisect.bisect_left(self.stamps_ns, stamp_ns)
        if index < len(self.stamps_ns) and self.stamps_ns[index] == stamp_ns:
            self.transforms[index] = transform
            return

        self.stamps_ns.insert(index, stamp_ns)
        self.transforms.insert(index, transform)

        # drop the oldest
        first = max(
            bisect.bisect_left(self.stamps_ns, self.stamps_ns[-1] - keep_ns),
            len(self.stamps_ns) - MAX_SAMPLES_PER_FRAME,
        )
        del self.stamps_ns[:first], self.transforms[:first]

    def look_up(self, stamp_ns: int, child: str) -> Transform:
        if self.static or stamp_ns == 0 or stamp_ns >= self.stamps_ns[-1]:
            return self.transforms[-1]

        index = bisect.bisect_left(self.stamps_ns, stamp_ns)
        if self.stamps_ns[index] == stamp_ns:
            return self.transforms[index]
        if index == 0:
            early = (self.stamps_ns[0] - stamp_ns) / 1e9
            raise FrameError(
                f"frame {child!r}: its oldest transform is {early:.3f} s "
                "younger than the asked time"
            )

        t0 = self.stamps_ns[index - 1]
        t1 = self.stamps_ns[index]
        return _between(
            self.transforms[index - 1], self.transforms[index], (stamp_ns - t0) / (t1 - t0)
        )


class TransformBuffer:
    """Frames with one parent each; `add` fills it, `lookup` composes.

    `clock`: steady time, s. `keep_ns`: time before the newest transform of a frame that is kept.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, keep_ns: int = KEEP_NS) -> None:
        self._keep_ns = keep_ns
        self._edges: dict[str, _Edge] = {}
        self._clock = clock
        self._tidied_at = clock()
        self._stamps = StampFilter(on_set_back=self._start_anew)

    def add(
        self,
        parent: str,
        child: str,
        stamp_ns: int,
        translation: Iterable[float],
        quat_xyzw: Iterable[float],
        *,
        static: bool = False,
    ) -> None:
        """Add a transform. Raises FrameError if it is no rigid motion, or for too many frames."""
        t = np.array(list(translation), dtype=float)
        q = np.array(list(quat_xyzw), dtype=float)
        norm = math.hypot(*q) if q.shape == (4,) else math.nan
        is_turn = abs(norm * norm - 1.0) < NORM_TOLERANCE
        if t.shape != (3,) or not np.isfinite(t).all() or not is_turn:
            raise FrameError(
                f"transform {parent!r} -> {child!r}: translation {t.tolist()}, "
                f"rotation {q.tolist()} is no rigid motion"
            )
        if not child or not parent or child == parent:
            raise FrameError(f"transform {parent!r} -> {child!r}: expected two different frames")

        edge = self._edges.get(child)
        now = self._clock()
        if edge is None and now - self._tidied_at >= SILENT_S:
            self._forget_silent(now)
        if edge is None or edge.parent != parent or edge.static != static:
            if edge is None and len(self._edges) >= MAX_FRAMES:
                raise FrameError(
                    f"frame {child!r}: {MAX_FRAMES} frames are known already, which is the limit"
                )
            edge = self._edges[child] = _Edge(parent, static)

        edge.heard_at = now
        if not static:
            self._stamps.rejection_reason(child, stamp_ns, 0, round(now * 1e9))
        edge.add(stamp_ns, Transform(t, q / norm), self._keep_ns)

    def _start_anew(self, child: str, _seconds: float) -> None:
        """Forget the past of a frame whose publisher's clock was set back."""
        edge = self._edges[child]
        edge.stamps_ns = []
        edge.transforms = []

    def _forget_silent(self, now: float) -> None:
        """Forget silent frames: names of spawned vehicles come once and would fill the table."""
        self._tidied_at = now
        self._stamps.drop_stale(round(now * 1e9))
        for child, edge in list(self._edges.items()):
            silence = 0.0 if edge.static else now - edge.heard_at
            if silence >= GONE_S:
                del self._edges[child]
            elif silence >= SILENT_S:
                edge.stamps_ns = edge.stamps_ns[-1:]
                edge.transforms = edge.transforms[-1:]

    def clear(self) -> None:
        """Forget the moving frames (after a jump of the clock); static ones stay."""
        self._edges = {child: edge for child, edge in self._edges.items() if edge.static}
        self._stamps.reset()

    def lookup(self, target: str, source: str, stamp_ns: int = 0) -> Transform:
        """Return the transform of coordinates in `source` into `target` at a time (0: the newest).

        Raises FrameError if no transforms connect the frames.
        """
        from_target, from_source = self._chains(target, source)
        down = self._climb(from_target, stamp_ns).inverse()
        return down @ self._climb(from_source, stamp_ns)

    def span_ns(self, target: str, source: str) -> tuple[int, int] | None:
        """Return the oldest and newest time at which all transforms between two frames are known.

        The result is None if all of them are static. Raises FrameError as `lookup`.
        """
        children = [child for chain in self._chains(target, source) for child in chain]
        stamps = [
            edge.stamps_ns for edge in (self._edges[child] for child in children) if not edge.static
        ]
        if not stamps:
            return None
        return max(times[0] for times in stamps), min(times[-1] for times in stamps)

    def frames(self) -> set[str]:
        """Return every frame that some transform names."""
        return set(self._edges) | {edge.parent for edge in self._edges.values()}

    def _chain(self, frame: str) -> list[str]:
        """Return a frame and the frames above it. Raises TransformTreeError."""
        chain = dict.fromkeys([frame])
        above = frame
        while (edge := self._edges.get(above)) is not None:
            above = edge.parent
            if above in chain:
                raise TransformTreeError(f"frame {frame!r}: its parents form a loop at {above!r}")
            if len(chain) > MAX_CHAIN:
                raise TransformTreeError(
                    f"frame {frame!r}: more than {MAX_CHAIN:,} transforms to the root of its tree"
                )
            chain[above] = None
        return list(chain)

    def _chains(self, target: str, source: str) -> tuple[list[str], list[str]]:
        """Return the frames from `target` and from `source` up to below their first shared one.

        Raises FrameError if there is none.
        """
        up_from_source = self._chain(source)
        up_from_target = self._chain(target)
        common = set(up_from_target)
        shared = next((frame for frame in up_from_source if frame in common), None)
        if shared is None:
            known = (
                "no transform names it"
                if source not in self.frames()
                else f"its tree ends at {up_from_source[-1]!r}"
            )
            raise FrameError(f"frame {source!r} is not connected to {target!r}: {known}")
        return (
            up_from_target[: up_from_target.index(shared)],
            up_from_source[: up_from_source.index(shared)],
        )

    def _climb(self, chain: list[str], stamp_ns: int) -> Transform:
        composed = IDENTITY
        for child in chain:
            composed = self._edges[child].look_up(stamp_ns, child) @ composed
        return composed


def _between(a: Transform, b: Transform, share: float) -> Transform:
    translation = a.translation + share * (b.translation - a.translation)
    cosine = float(a.quat_xyzw @ b.quat_xyzw)
    end = b.quat_xyzw if cosine >= 0 else -b.quat_xyzw  # the short way round

    angle = math.acos(min(1.0, abs(cosine)))
    if angle < 1e-6:
        q = a.quat_xyzw + share * (end - a.quat_xyzw)
    else:
        q = (
            math.sin((1 - share) * angle) * a.quat_xyzw + math.sin(share * angle) * end
        ) / math.sin(angle)

    return Transform(translation, q / np.linalg.norm(q))
