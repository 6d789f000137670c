# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Placing objects without ROS: ground contact on a map, datagrams to RflySim3D.

It serves `rfly objects place`.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from collections.abc import Iterator, Sequence

from rfly_bringup.cli.wire_monitor import SDK_WINDOWS
from rfly_bringup.terminal import progress_bar
from rfly_common.arrays import Triple
from rfly_common.errors import PlacementError
from rfly_common.frames import enu_to_ned
from rfly_ue_bridge.codec.state_datagrams import encode_states
from rfly_ue_bridge.objects.placement import (
    FIRST_CHOSEN_ID,
    PlacedObject,
    Placement,
    from_ned,
    place,
)
from rfly_ue_bridge.sockets.udp_sender import UdpSender

AT_ONCE = 200
"""Objects in one portion."""
PAUSE_S = 0.01
"""Time between portions, s; a window's buffer holds no more than one."""
SHOWN = 20
"""Most objects that are printed."""


def one_object(
    vehicle_type: int,
    x: float,
    y: float,
    yaw: float,
    z: float | None,
    frame: str,
    object_id: int,
    offset: float,
    ground: bool,
    scale: Triple,
) -> PlacedObject:
    """Return the object of the command line, in map or map_ned. Raise PlacementError."""
    for name, value in (("yaw", yaw), ("z", z)):
        if value is not None and not math.isfinite(value):
            raise PlacementError(f"{name}: {value}, expected a finite number")
    pose = from_ned(x, y, yaw, z) if frame == "map_ned" else {"x": x, "y": y, "yaw": yaw, "z": z}
    return PlacedObject(
        vehicle_type, id=object_id, offset=offset, use_ground_packet=ground, scale=scale, **pose
    )


def send_objects(
    objects: Sequence[PlacedObject],
    map_name: str,
    search_path: Sequence[str],
    host: str,
    port: int,
    window: int,
) -> None:
    """Place objects on the map where they need it, send them, and print them.

    Raise TerrainError, ConfigError or PlacementError.
    """
    from rfly_terrain.tiles.open_terrain import load_terrain

    objects = _with_ids(objects)

    terrain = load_terrain(map_name, search_path) if any(o.needs_terrain for o in objects) else None
    placed = place(objects, terrain)

    windows = SDK_WINDOWS if window == -1 else 1
    first_port = port if window == -1 else port + window
    sender = UdpSender(host, first_port, windows)
    try:
        with progress_bar("placing") as show:
            for first in range(0, len(placed), AT_ONCE):
                portion = slice(first, first + AT_ONCE)
                if first:
                    time.sleep(PAUSE_S)
                sender.send_runs(
                    encode_states(placed.to_ned_states().select(portion), in_fleet=False)
                )
                show(min(first + AT_ONCE, len(placed)) / len(placed))
        unheard = sender.closed_ports()
        errors = "; ".join(
            f"{w}: {w.last_error}"
            for w in sender.windows
            if w.last_error and w.address[1] not in unheard
        )
    finally:
        sender.close()

    for line in itertools.islice(_lines(placed, "" if terrain is None else terrain.name), SHOWN):
        print(line)
    if len(placed) > SHOWN:
        print(f"… and {len(placed) - SHOWN} more")

    ports = f"{first_port}-{first_port + windows - 1}" if windows > 1 else f"{first_port}"
    note = f" (nothing listens on {', '.join(map(str, unheard))})" if unheard else ""

    if errors:
        raise PlacementError(f"not everything was sent: {errors}")
    print(f"sent {len(placed)} object{'s' if len(placed) > 1 else ''} to {host}:{ports}{note}")


def _with_ids(objects: Sequence[PlacedObject]) -> list[PlacedObject]:
    """Return the objects with the free ids from FIRST_CHOSEN_ID up for those without one."""
    used_ids = {o.id for o in objects}
    free_ids = (i for i in itertools.count(FIRST_CHOSEN_ID) if i not in used_ids)
    return [o if o.id else dataclasses.replace(o, id=next(free_ids)) for o in objects]


def _lines(placed: Placement, terrain: str) -> Iterator[str]:
    """Yield a line for each placed object."""
    ned = enu_to_ned(placed.position)
    for index, thing in enumerate(placed.objects):
        e, n, u = placed.position[index].tolist()
        x, y, z = (ned[index] + 0.0).tolist()  # + 0.0: no "-0.000"
        where = f"east {e:.3f} north {n:.3f} up {u:.3f} (NED {x:.3f} {y:.3f} {z:.3f})"
        if thing.use_ground_packet:
            where += ", on the ground that RflySim3D finds"
        elif not placed.inside[index]:
            where += f", off the map {terrain!r}: the altitude is that of its edge"
        yield f"{thing.id}: type {thing.vehicle_type} at {where}"
