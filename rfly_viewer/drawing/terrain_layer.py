# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Layer of the ground in a viser scene.

Each browser gets a coarse ground at once and the fine one after its first picture.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import viser

from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.height_map.terrain import Terrain
from rfly_viewer.drawing.terrain_levels import GroundPicture, PatchMaker, TerrainLevels
from rfly_viewer.drawing.terrain_mesh import terrain_glb, terrain_mesh

COARSE_TRIANGLES = 20_000
"""Most triangles of the coarse ground."""
COARSE_PICTURE = 512
"""Pixels of the longer side of the coarse ground's picture."""
FINE_HIDDEN_S = 3.0
"""Time in which the fine ground is there unseen, s.

The browser has then read it when it replaces the coarse one.
"""
_HAZE = (206, 220, 230)


@dataclass
class _Ground:
    """Ground that one browser shows."""

    coarse: Any
    fine: Any = None
    shown_at_s: float = 0.0
    """Time at which the fine ground replaces the coarse one."""


class TerrainLayer:
    """Ground of all browsers."""

    def __init__(self, server: viser.ViserServer, max_triangles: int, lit: bool) -> None:
        self._server = server
        self._max_triangles = max_triangles
        self._lit = lit
        self._terrain: Terrain | None = None
        self._coarse = b""
        self._fine = b""
        """Fine ground; empty until a thread has made it."""
        self._refining: threading.Thread | None = None
        self._refined: HeightMap | None = None
        """Terrain that the thread was given last."""
        self._grounds: dict[int, _Ground] = {}
        self._imagery: GroundPicture | None = None
        self._daylight = 1.0
        self._levels: TerrainLevels | None = None
        """Ground with a picture or of a map in tiles, in place of the coarse and the fine one."""
        self._makers: list[PatchMaker] = []
        """Makers of maps before that are still at work."""

    def show(self, terrain: Terrain, imagery: GroundPicture | None = None) -> None:
        """Draw this map instead of the one before, with a picture on it if there is one."""
        if terrain is self._terrain and imagery is self._imagery:
            return
        self._terrain = terrain
        self._imagery = imagery
        self._fine = b""
        self.close()
        if imagery is not None or not isinstance(terrain, HeightMap):
            self._levels = TerrainLevels(self._server.scene, terrain, imagery, self._lit)
            self._levels.dim(self._daylight)
            self._forget()
            return

        coarse = terrain_mesh(terrain, min(COARSE_TRIANGLES, self._max_triangles), COARSE_PICTURE)
        self._coarse = terrain_glb(coarse, self._lit)

        self._forget()

    def dim(self, daylight: float) -> None:
        """Draw what is drawn without light in that of the weather; 1 is clear air by day."""
        self._daylight = daylight
        if self._levels is not None and self._lit:
            self._levels.dim(daylight)

    def close(self, wait_s: float = 0.0) -> None:
        """Take the ground in patches out of all browsers, and make no more of it.

        wait_s: longest time to wait for patches that are being made, s, of maps before, too.
        """
        if self._levels is not None:
            self._levels.remove()
            self._makers.append(self._levels.maker)
            self._levels = None
        end_s = time.monotonic() + wait_s
        self._makers = [
            maker for maker in self._makers if maker.close(max(0.0, end_s - time.monotonic()))
        ]

    def take_problem(self) -> str:
        """Return why a part of it could not be read, once; else an empty text."""
        return "" if self._levels is None else self._levels.take_problem()

    def _forget(self) -> None:
        """Take the map before out of all browsers, and set the haze for this one."""
        for ground in self._grounds.values():
            ground.coarse.remove()
            if ground.fine is not None:
                ground.fine.remove()
        self._grounds.clear()

        assert self._terrain is not None
        x_min, x_max, y_min, y_max = self._terrain.bounds
        across = float(np.hypot(x_max - x_min, y_max - y_min))
        self._server.scene.configure_fog(0.1 * across, 1.6 * across, color=_HAZE)

    @property
    def is_settled(self) -> bool:
        """True if there are browsers, and all of them show the fine ground."""
        if self._levels is not None:
            return self._levels.is_settled
        grounds = self._grounds.values()
        return bool(grounds) and not any(ground.coarse.visible for ground in grounds)

    def update(self, now_s: float, near: HeightMap) -> None:
        """Give each browser the ground that it lacks; near: that about the cameras."""
        clients = self._server.get_clients()
        if self._levels is not None:
            self._levels.update(clients, now_s, near)
            return

        self._start_refining()
        self._grounds = {
            number: ground for number, ground in self._grounds.items() if number in clients
        }

        for number, client in clients.items():
            ground = self._grounds.get(number)
            if ground is None:
                self._grounds[number] = _Ground(
                    _add(client.scene, "/terrain/coarse", self._coarse, visible=True)
                )
            elif ground.fine is None and self._fine:
                ground.fine = _add(client.scene, "/terrain/fine", self._fine, visible=False)
                ground.shown_at_s = now_s + FINE_HIDDEN_S
            elif ground.fine is not None and ground.coarse.visible and now_s >= ground.shown_at_s:
                with client.atomic():
                    ground.fine.visible = True
                    ground.coarse.visible = False

    def _start_refining(self) -> None:
        """Start a thread that makes the fine ground, one at a time, however often the map changes.

        It takes seconds for a large map. A process that ends waits for it: a thread that is ended
        within a C++ library aborts the process.
        """
        at_work = self._refining is not None and self._refining.is_alive()
        terrain = self._terrain
        if terrain is self._refined or not isinstance(terrain, HeightMap) or at_work:
            return
        self._refined = terrain
        self._refining = threading.Thread(
            target=self._refine, args=(terrain,), name="rfly view: ground"
        )
        self._refining.start()

    def _refine(self, terrain: HeightMap) -> None:
        glb = terrain_glb(terrain_mesh(terrain, self._max_triangles), self._lit)
        if terrain is self._terrain:
            self._fine = glb


def _add(scene: viser.SceneApi, name: str, glb: bytes, visible: bool) -> Any:
    return scene.add_glb(name, glb, visible=visible, cast_shadow=False, receive_shadow=True)
