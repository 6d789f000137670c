"""Objects placed without ROS: ground contact on a map, datagrams to RflySim3D. For `rfly objects
place`.
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
PAUSE_S = 0.01
"""between portions of that many: a window's buffer holds no more"""
SHOWN = 20


def one_object(
    vehicle_type: int, x: float, y: float, yaw: float, z: float | None, frame: str,
    object_id: int, offset: float, ground: bool, scale: Triple,
) -> PlacedObject:  # fmt: skip
    """The object that the command line describes, in map or map_ned. PlacementError."""
    for name, value in (("yaw", yaw), ("z", z)):
        if value is not None and not math.isfinite(value):
            raise PlacementError(f"{name}: {value}, expected a finite number")
    where = from_ned(x, y, yaw, z) if frame == "map_ned" else {"x": x, "y": y, "yaw": yaw, "z": z}
    return PlacedObject(
        vehicle_type, id=object_id, offset=offset, use_ground_packet=ground, scale=scale, **where
    )


def send_objects(
    objects: Sequence[PlacedObject],
    map_name: str,
    search_path: Sequence[str],
    host: str,
    port: int,
    window: int,
) -> None:
    """Place them on the map, where one needs it, send them, and say so. TerrainError, ConfigError,
    PlacementError.
    """
    from rfly_terrain.height_map.height_map import HeightMap

    objects = _with_ids(objects)
    terrain = (
        HeightMap.load(map_name, search_path) if any(o.needs_terrain for o in objects) else None
    )
    placed = place(objects, terrain)
    windows, first_port = (SDK_WINDOWS, port) if window == -1 else (1, port + window)
    sender = UdpSender(host, first_port, windows)
    try:
        with progress_bar("placing") as show:
            for start in range(0, len(placed), AT_ONCE):
                portion = slice(start, start + AT_ONCE)
                if start:
                    time.sleep(PAUSE_S)
                sender.send_runs(
                    encode_states(placed.to_ned_states().select(portion), in_fleet=False)
                )
                show(min(start + AT_ONCE, len(placed)) / len(placed))
        unheard = sender.closed_ports()
        lost = "; ".join(
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
    note = f" (nobody listens on {', '.join(map(str, unheard))})" if unheard else ""
    if lost:
        raise PlacementError(f"not all was sent: {lost}")
    print(f"sent {len(placed)} object{'s' if len(placed) > 1 else ''} to {host}:{ports}{note}")


def _with_ids(objects: Sequence[PlacedObject]) -> list[PlacedObject]:
    """Objects without an id get those from FIRST_CHOSEN_ID on that the list leaves free."""
    taken = {o.id for o in objects}
    free = (i for i in itertools.count(FIRST_CHOSEN_ID) if i not in taken)
    return [o if o.id else dataclasses.replace(o, id=next(free)) for o in objects]


def _lines(placed: Placement, terrain: str) -> Iterator[str]:
    ned = enu_to_ned(placed.position)
    for index, thing in enumerate(placed.objects):
        (e, n, u), (x, y, z) = placed.position[index].tolist(), (ned[index] + 0.0).tolist()
        where = f"east {e:.3f} north {n:.3f} up {u:.3f} (NED {x:.3f} {y:.3f} {z:.3f})"
        if thing.use_ground_packet:
            where += ", on the ground that RflySim3D finds"
        elif not placed.inside[index]:
            where += f", off the map {terrain!r}: the altitude is that of its edge"
        yield f"{thing.id}: type {thing.vehicle_type} at {where}"
