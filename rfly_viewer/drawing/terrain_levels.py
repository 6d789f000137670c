# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Ground in patches of several levels of detail, finer where a browser's camera is near.

Theory of operation. The map is one patch; each patch has four children of half its sides, and as
many quads and pixels as every other. The patches that a browser shows cover the map once. A patch
gives way to its children when its pixels look too large, and four children to their parent when
they look too small. Those that replace others come unseen, until the browser has had time to read
them: so there is always a ground. A patch behind the camera is not divided. Walls below the rims
close the cracks between levels. A coarse ground below all of it is in the scene of all browsers,
so that it comes with a page's first messages: without pictures and light it is the first that a
browser draws, and it shows through a hole that a slow browser may have. A patch that lacks a part,
since a file could not be read, is made again from time to time, one at a time, and replaced when
it has changed.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from rfly_common.errors import RflyError
from rfly_common.threads.loop_thread import LoopThread
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.height_map.point_cloud import Region
from rfly_terrain.height_map.terrain import Terrain
from rfly_terrain.imagery.imagery import over
from rfly_viewer.drawing.screen import Screen
from rfly_viewer.drawing.terrain_mesh import (
    UNLIT,
    TerrainMesh,
    coloured_glb,
    grain,
    region_mesh,
    terrain_glb,
    terrain_picture,
    with_skirts,
)

QUADS = 32
"""Quads a side of a patch."""
BELOW_QUADS = 64
"""Quads a side of the coarse ground below the patches, each with colours at five places."""
PIXELS = 512
"""Pixels a side of a patch's picture."""
SPLIT_PX = 1.25 * PIXELS
"""Length on the screen of a patch's side above which its children replace it, pixels."""
MERGE_PX = 0.6 * SPLIT_PX
"""Length of a patch's side below which it replaces its children, pixels."""
FINEST_LEVEL = 16
MAX_PATCHES = 60
"""Most patches that a browser shows: 80 MB of pictures, 260,000 triangles."""
SPARE_ROOM = 6
"""Number of patches that could still be divided, below which those behind a camera are coarser."""
HIDDEN_S = 0.7
"""Time in which a patch is there unseen, s."""
RENEW_S = 5.0
"""Time after which a patch that lacks a part is made again, s."""
PATCHES_KEPT = 200
"""Files of patches in memory: some 50 MB."""
BELOW_SHARE = 1e-3
"""Depth of the coarse ground below the lowest heights, as a share of the map's side."""
MEANS_SHARE = 0.1
"""More of that depth where heights are means of many samples, as a share of their range."""
AROUND_SHARE = 0.125
"""Ground that is read on each side of a patch for its slopes there, as a share of its side."""
BASE_PIXELS = 1024
"""Pixels of the longer side of the picture of the heights, where there is no other."""


class GroundPicture(Protocol):
    """Colours of the ground: `Imagery`, or what is drawn like it."""

    pixel: float
    """Side of a pixel on the ground, m, about."""

    def texture(self, region: Region, width: int, height: int) -> NDArray[np.uint8]:
        """Return the colours of a region; see `Imagery.texture`."""
        ...


class Patch(NamedTuple):
    """One of 2^level x 2^level parts of a map, from the west and from the south."""

    level: int
    i: int
    j: int

    @property
    def children(self) -> list[Patch]:
        """The four quarters."""
        return [
            Patch(self.level + 1, 2 * self.i + i, 2 * self.j + j) for i in (0, 1) for j in (0, 1)
        ]

    @property
    def parent(self) -> Patch:
        """The patch that this one is a quarter of."""
        return Patch(self.level - 1, self.i // 2, self.j // 2)

    def region(self, bounds: Region) -> Region:
        """Return x_min, x_max, y_min, y_max of the patch on a map with these bounds, m."""
        x_min, x_max, y_min, y_max = bounds
        share = 0.5**self.level
        east = (x_max - x_min) * share
        north = (y_max - y_min) * share
        x = x_min + self.i * east
        y = y_min + self.j * north
        return x, x + east, y, y + north


ROOT = Patch(0, 0, 0)
"""The whole map."""
BELOW = Patch(-1, 0, 0)
"""The coarse ground below all patches."""


def side_px(region: Region, eye: Sequence[float], focal_px: float) -> float:
    """Return how long the longer side of a region is on the screen at its nearest point, pixels.

    eye: x, y of the camera, and its height above the ground below it, m.
    """
    x_min, x_max, y_min, y_max = region
    x, y, height = eye
    away_x = max(x_min - x, 0.0, x - x_max)
    away_y = max(y_min - y, 0.0, y - y_max)
    distance = max(math.hypot(away_x, away_y, height), 1.0)
    return focal_px * max(x_max - x_min, y_max - y_min) / distance


def is_behind_camera(region: Region, heights: tuple[float, float], screen: Screen) -> bool:
    """Return whether all of a region, between two heights, m, is behind a camera."""
    corners = np.array(list(itertools.product(region[:2], region[2:], heights)))
    _, ahead = screen.pixels(corners)
    return bool((ahead < 0.0).all())


class PatchFile(NamedTuple):
    """A patch as binary glTF."""

    data: bytes
    is_whole: bool
    """False if a part of its picture or ground could not be read."""


class PatchMaker:
    """Maker of the patches' files, in a thread of its own. `wanted` are made first to last."""

    def __init__(self, terrain: Terrain, imagery: GroundPicture | None, lit: bool) -> None:
        self.terrain = terrain
        self.imagery = imagery
        self.daylight = 1.0
        """Light of the weather as a share of that in clear air by day."""
        self.problem = ""
        """Reason why a part of picture or ground could not be read; empty if all could."""
        self._lit = lit
        self._made: OrderedDict[Patch, PatchFile] = OrderedDict()
        self._wanted: list[Patch] = []
        self._changed = threading.Condition()
        self._thread: LoopThread | None = None
        self._closed = False
        self._part: tuple[Region, HeightMap] | None = None
        """The ground about a patch that was drawn last."""
        self._base: tuple[HeightMap, NDArray[np.uint8]] | None = None
        """The same ground with the colours of its heights."""
        self._limits: tuple[float, float] | None = None
        """The lowest and the highest height of the tints, m; None until they are known."""
        self._failures: list[str] = []
        """Reasons why parts of the patch that is made could not be read."""

        # as fine as the picture or the samples
        x_min, x_max, y_min, y_max = terrain.bounds
        longest = max(x_max - x_min, y_max - y_min)
        pixels = 1.0 if imagery is None else longest / imagery.pixel / PIXELS
        samples = (max(terrain.rows, terrain.columns) - 1) / QUADS
        self.finest = min(max(0, math.ceil(math.log2(max(pixels, samples)))), FINEST_LEVEL)

    def file(self, patch: Patch) -> PatchFile | None:
        """Return the file of a patch, if it is made."""
        with self._changed:
            file = self._made.get(patch)
            if file is not None:
                self._made.move_to_end(patch)
            return file

    def forget(self, patch: Patch) -> None:
        """Make a patch anew when it is wanted."""
        with self._changed:
            self._made.pop(patch, None)

    def want(self, patches: list[Patch]) -> None:
        """Make these patches, in this order, in place of those wanted before."""
        with self._changed:
            self._wanted = patches
            if patches and self._thread is None:
                self._thread = LoopThread(self._make_one, "rfly view: ground")
                self._thread.start()
            self._changed.notify()

    def close(self, wait_s: float = 0.0) -> bool:
        """Make nothing more, and wait some seconds for the patch that is being made.

        Return whether it is made still. A thread that is at work when the interpreter ends can
        abort the process.
        """
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is None:
            return False
        self._thread.join(wait_s)
        return self._thread.is_alive()

    def _make_one(self) -> bool:
        """Make the patch that is wanted first; return False once there is none to make any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._wanted)
            if self._closed:
                return False
            patch = self._wanted.pop(0)
            if patch in self._made:
                return True
        daylight = self.daylight
        file = self.made(patch)
        with self._changed:
            if patch == BELOW and daylight != self.daylight:
                return True  # made in the light of before
            self._made[patch] = file
            while len(self._made) > PATCHES_KEPT:
                self._made.popitem(last=False)
        return True

    def made(self, patch: Patch) -> PatchFile:
        """Return the file of a patch."""
        self._failures.clear()
        if patch == BELOW:
            data = coloured_glb(self.below(), UNLIT * self.daylight if self._lit else 1.0)
        else:
            region = patch.region(self.terrain.bounds)
            mesh = self.mesh(region, self._picture(region))
            data = terrain_glb(mesh, self._lit, is_photo=True)
        if not self._failures:
            return PatchFile(data, is_whole=True)

        self.problem = self._failures[-1]
        self._part = self._base = None  # the next patch reads anew
        return PatchFile(data, is_whole=False)

    def mesh(self, region: Region, picture: NDArray[np.uint8]) -> TerrainMesh:
        """Return the ground of a patch, with walls below its rim.

        They are as deep as the rim is uneven: a neighbour's rim lies between its ends.
        """
        mesh = region_mesh(self._ground(region), region, QUADS, QUADS, picture)
        rim = mesh.vertices[: (QUADS + 1) ** 2, 2].reshape(QUADS + 1, QUADS + 1)
        edges = np.concatenate([rim[0], rim[-1], rim[:, 0], rim[:, -1]])
        depth = float(np.ptp(edges)) + 0.01 * (region[1] - region[0])
        return with_skirts(mesh, QUADS, QUADS, depth)

    def below(self) -> TerrainMesh:
        """Return a coarse ground that is nowhere above the patches."""
        bounds = self.terrain.bounds
        terrain = self._ground(bounds)
        mesh = region_mesh(terrain, bounds, BELOW_QUADS, BELOW_QUADS, self._picture(bounds))

        # the lowest heights of blocks as large as the quads, and of those around
        x_step = 1 if terrain.step_x > 0 else -1
        y_step = 1 if terrain.step_y > 0 else -1
        lowest = terrain.heights[::x_step, ::y_step]
        for axis in (0, 1):
            starts = np.arange(BELOW_QUADS) * lowest.shape[axis] // BELOW_QUADS
            lowest = np.minimum.reduceat(lowest, starts, axis)
        lowest = np.asarray(cv2.erode(lowest, np.ones((3, 3), np.uint8)), np.float32)
        i, j = np.minimum(mesh.uv.T * BELOW_QUADS, BELOW_QUADS - 1).astype(int)
        mesh.vertices[:, 2] = lowest[i, j] - BELOW_SHARE * (bounds[1] - bounds[0])
        if terrain is not self.terrain:  # means of heights: valleys are deeper
            mesh.vertices[:, 2] -= MEANS_SHARE * (terrain.z_max - terrain.z_min)
        return mesh

    def _tint_limits(self) -> tuple[float, float]:
        """Return the lowest and the highest height of the tints, m."""
        if self._limits is not None:
            return self._limits
        ground = self._ground(self.terrain.bounds)
        limits = ground.z_min, ground.z_max
        if not self._failures:
            self._limits = limits
        return limits

    def _ground(self, region: Region) -> HeightMap:
        """Return the ground of a region and some way around it."""
        if self._part is None or self._part[0] != region:
            x_min, x_max, y_min, y_max = region
            spare_x = AROUND_SHARE * (x_max - x_min)
            spare_y = AROUND_SHARE * (y_max - y_min)
            wide = (x_min - spare_x, x_max + spare_x, y_min - spare_y, y_max + spare_y)
            self._part = region, self.terrain.detail(wide, PIXELS, self._failures.append)
        return self._part[1]

    def _picture(self, region: Region) -> NDArray[np.uint8]:
        """Return the picture of a region, RGB, north up."""
        try:
            texture = np.zeros((PIXELS, PIXELS, 4), np.uint8)
            if self.imagery is not None:
                texture = self.imagery.texture(region, PIXELS, PIXELS)
        except RflyError as error:
            self._failures.append(str(error))
        if texture[..., 3].min() == 255:
            return texture[..., :3]

        # where the region is in the picture of the heights
        limits = self._tint_limits()
        terrain = self._ground(region)
        if self._base is None or self._base[0] is not terrain:
            self._base = terrain, terrain_picture(terrain, BASE_PIXELS, limits, has_grain=False)
        base = self._base[1]
        x_min, x_max, y_min, y_max = terrain.bounds
        height, width = base.shape[:2]
        share = (np.arange(PIXELS, dtype=np.float32) + 0.5) / PIXELS
        x = region[0] + (region[1] - region[0]) * share
        y = region[3] - (region[3] - region[2]) * share
        column, row = np.meshgrid(
            (x - x_min) / (x_max - x_min) * width - 0.5,
            (y_max - y) / (y_max - y_min) * height - 0.5,
        )
        ground = cv2.remap(base, column, row, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)

        # one tile of grain a patch, so that neighbours fit
        grained = np.clip(ground * cv2.resize(grain(), (PIXELS, PIXELS))[..., None], 0, 255)
        return over(texture, grained.astype(np.uint8))


class _Drawn(NamedTuple):
    """A patch in a browser."""

    name: str
    handle: Any
    file: PatchFile


@dataclass
class _Patches:
    """Patches of one browser."""

    shown: dict[Patch, _Drawn] = field(default_factory=dict)
    hidden: dict[Patch, tuple[_Drawn, float]] = field(default_factory=dict)
    """Patches that are there unseen, and since when."""


class TerrainLevels:
    """Ground of all browsers, in patches."""

    def __init__(
        self, scene: Any, terrain: Terrain, imagery: GroundPicture | None, lit: bool
    ) -> None:
        """Make the ground. scene: that of all browsers."""
        self.maker = PatchMaker(terrain, imagery, lit)
        self._scene = scene
        self._below: _Drawn | None = None
        """The coarse ground below the patches of all browsers, once it is made."""
        self._browsers: dict[int, _Patches] = {}
        self._needed: list[Patch] = []
        """Patches that some browser lacks."""
        self._renewed: Patch | None = None
        """Patch that was made again last, since it lacked a part."""
        self._renew_at_s = 0.0
        """Time at which the next one is."""
        self._told: set[str] = set()
        self.is_settled = False
        """True if there are browsers, and all of them show the patches that they should."""

    def remove(self) -> None:
        """Take the ground out of all browsers, and make no more of it."""
        self.maker.close()
        if self._below is not None:
            self._below.handle.remove()
        for patches in self._browsers.values():
            hidden = [drawn for drawn, _ in patches.hidden.values()]
            for drawn in (*patches.shown.values(), *hidden):
                drawn.handle.remove()
        self._browsers.clear()

    def dim(self, daylight: float) -> None:
        """Make the coarse ground anew if the light is another one; see `PatchMaker.daylight`.

        That of before is shown until then.
        """
        if daylight != self.maker.daylight:
            self.maker.daylight = daylight
            self.maker.forget(BELOW)

    def update(self, clients: dict[int, Any], now_s: float, near: HeightMap) -> None:
        """Give each browser the patches that it needs by where its camera is.

        near: the ground about the cameras, in memory.
        """
        self._needed = []
        changes = 0
        for number in set(self._browsers) - set(clients):
            del self._browsers[number]
        self._show_below()
        if not clients and self.maker.file(ROOT) is None:  # the first one needs it
            self._needed.append(ROOT)
        for number, client in clients.items():
            patches = self._browsers.setdefault(number, _Patches())
            if patches.shown:
                changes += self._change(patches, client, now_s, near)
            else:
                changes += 1
                self._replace(patches, client, [], [ROOT], now_s)
        self.maker.want(list(dict.fromkeys([*sorted(self._needed), *self._to_renew(now_s)])))
        self.is_settled = bool(clients) and not changes

    def _to_renew(self, now_s: float) -> list[Patch]:
        """Return the patch that is to be made again, of those in browsers that lack a part."""
        drawn = [pair for patches in self._browsers.values() for pair in patches.shown.items()]
        if self._below is not None:
            drawn.append((BELOW, self._below))
        lacking = {
            patch for patch, shown in drawn if not (self.maker.file(patch) or shown.file).is_whole
        }
        last = self._renewed
        if last in lacking and self.maker.file(last) is None:
            return [last]  # not made yet
        if last is not None and last not in lacking:  # what failed can be read again
            self._renewed = None
            self._renew_at_s = now_s
            self._told.clear()
        if not lacking:
            self._renew_at_s = now_s + RENEW_S
        elif now_s >= self._renew_at_s:
            # in turn
            self._renewed = min(
                (each for each in lacking if last and each > last), default=min(lacking)
            )
            self._renew_at_s = now_s + RENEW_S
            self.maker.forget(self._renewed)
            return [self._renewed]
        return []

    def _show_below(self) -> None:
        """Show the coarse ground to all browsers when it is made, and when it was made again."""
        file = self.maker.file(BELOW)
        if file is None:
            if self._below is None or self._renewed != BELOW:
                self._needed.append(BELOW)
        elif self._below is None or file != self._below.file:
            if self._below is not None:
                self._below.handle.remove()
            self._below = _add(self._scene, "/terrain/below", file)

    def _change(self, patches: _Patches, client: Any, now_s: float, near: HeightMap) -> int:
        """Begin or finish the changes that a browser's camera asks for; return their number."""
        terrain = self.maker.terrain
        bounds = terrain.bounds
        screen = Screen.of(client.camera)
        x, y, z = (float(number) for number in screen.position)
        eye = (x, y, max(z - near.altitude(x, y), 0.0))

        def size(patch: Patch) -> float:
            return side_px(patch.region(bounds), eye, screen.focal_px)

        def is_behind(patch: Patch) -> bool:
            return is_behind_camera(patch.region(bounds), (terrain.z_min, terrain.z_max), screen)

        changes: list[tuple[list[Patch], list[Patch]]] = []
        room = (MAX_PATCHES - len(patches.shown)) // 3
        for parent in sorted({patch.parent for patch in patches.shown if patch.level > 0}):
            children = parent.children
            is_small = size(parent) < MERGE_PX or (room < SPARE_ROOM and is_behind(parent))
            if is_small and all(child in patches.shown for child in children):
                changes.append((children, [parent]))
        splits = [
            patch
            for patch in sorted(patches.shown)
            if patch.level < self.maker.finest and size(patch) > SPLIT_PX and not is_behind(patch)
        ]
        changes += [([patch], patch.children) for patch in splits[: max(room, 0)]]
        changes += [([patch], [patch]) for patch in self._renewed_of(patches)]

        for patch in set(patches.hidden) - {patch for _, new in changes for patch in new}:
            patches.hidden.pop(patch)[0].handle.remove()
        for old, new in changes:
            self._replace(patches, client, old, new, now_s)
        return len(changes)

    def _renewed_of(self, patches: _Patches) -> list[Patch]:
        """Return the patches of a browser that have changed since they were sent."""
        renewed = []
        for patch, drawn in patches.shown.items():
            if drawn.file.is_whole:
                continue
            file = self.maker.file(patch) or drawn.file
            if file.data == drawn.file.data:
                patches.shown[patch] = drawn._replace(file=file)
            else:
                renewed.append(patch)
        return renewed

    def _replace(
        self, patches: _Patches, client: Any, old: list[Patch], new: list[Patch], now_s: float
    ) -> None:
        """Replace patches when the browser has had time to read the new ones."""
        for patch in new:
            if patch in patches.hidden:
                continue
            file = self.maker.file(patch)
            if file is None:
                self._needed.append(patch)
            else:
                name = _name(patch)
                if patch in patches.shown and patches.shown[patch].name == name:
                    name += "_new"
                drawn = _add(client.scene, name, file, visible=False)
                patches.hidden[patch] = drawn, now_s
        since = [patches.hidden[patch][1] for patch in new if patch in patches.hidden]
        if len(since) < len(new) or now_s < max(since) + HIDDEN_S:
            return

        with client.atomic():
            replaced = [patches.shown.pop(patch) for patch in old]
            for patch in new:
                drawn, _ = patches.hidden.pop(patch)
                drawn.handle.visible = True
                patches.shown[patch] = drawn
            for drawn in replaced:
                drawn.handle.remove()

    def take_problem(self) -> str:
        """Return why a part of the picture could not be read, once; else an empty text."""
        problem = self.maker.problem
        self.maker.problem = ""
        if problem in self._told:
            return ""
        self._told.add(problem)
        return problem


def _name(patch: Patch) -> str:
    return f"/terrain/{patch.level}_{patch.i}_{patch.j}"


def _add(scene: Any, name: str, file: PatchFile, visible: bool = True) -> _Drawn:
    handle = scene.add_glb(name, file.data, visible=visible, cast_shadow=False, receive_shadow=True)
    return _Drawn(name, handle, file)
