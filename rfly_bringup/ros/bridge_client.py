# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Clients of nodes' services: objects for `rfly objects`, faults for `rfly sim fault`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from rfly_suite.srv import InjectFault, ListObjects, MoveObject, PlaceObject, RemoveObject

from rfly_bringup.ros.command_client import CommandClient
from rfly_bringup.terminal import progress_bar
from rfly_common.errors import ConfigError, PlacementError
from rfly_ue_bridge.objects.placement import PlacedObject

SHOWN = 20


class BridgeClient(CommandClient):
    """Client that raises PlacementError if the bridge refuses, or none answers."""

    def __init__(self, namespace: str) -> None:
        super().__init__("rfly_objects", namespace, "ue_bridge_node", PlacementError)

    def place(self, objects: Sequence[PlacedObject]) -> None:
        """Place objects one after the other; stop at the first that is refused."""
        own_height = next((o for o in objects if o.z is not None), None)
        if own_height is not None:
            raise PlacementError(
                f"object {own_height.id}: it has a z of its own, but the bridge takes heights "
                "from its terrain: leave z out, or place without --bridge"
            )

        with progress_bar("placing") as show:
            for index, thing in enumerate(objects):
                request = PlaceObject.Request(
                    id=thing.id,
                    vehicle_type=thing.vehicle_type,
                    x=thing.x,
                    y=thing.y,
                    yaw=thing.yaw,
                    frame_id="map",
                    offset=thing.offset,
                    use_ground_packet=thing.use_ground_packet,
                )
                scale = request.scale
                scale.x, scale.y, scale.z = thing.scale
                request.size.x, request.size.y, request.size.z = thing.size
                answer = self.call(PlaceObject, "place_object", request)
                if index < SHOWN:
                    print(
                        f"{answer.id}: type {thing.vehicle_type} at "
                        f"{_point(answer.pose)}{_note(answer)}"
                    )
                show((index + 1) / len(objects))

        print(f"placed {len(objects)} object{'s' if len(objects) > 1 else ''}")

    def move(self, object_id: int, x: float, y: float, yaw: float, frame_id: str) -> None:
        """Move an object; x, y in m, yaw in rad, in that frame."""
        request = MoveObject.Request(id=object_id, x=x, y=y, yaw=yaw, frame_id=frame_id)
        answer = self.call(MoveObject, "move_object", request)
        print(f"{object_id}: now at {_point(answer.pose)} ({frame_id}){_note(answer)}")

    def remove(self, object_id: int) -> None:
        """Remove an object."""
        self.call(RemoveObject, "remove_object", RemoveObject.Request(id=object_id))
        print(f"{object_id}: removed")

    def list(self, as_json: bool) -> None:
        """Print all objects, as a table or as JSON."""
        array = self.call(ListObjects, "list_objects", ListObjects.Request()).objects
        rows = [
            {
                "id": array.id[i],
                "type": array.vehicle_type[i],
                "frame": array.header.frame_id,
                "position": list(array.position[3 * i : 3 * i + 3]),
                "orientation_xyzw": list(array.orientation[4 * i : 4 * i + 4]),
                "offset": array.offset[i],
                "scale": list(array.scale[3 * i : 3 * i + 3]),
                "ground_packet": bool(array.use_ground_packet[i]),
            }
            for i in range(len(array.id))
        ]

        if as_json:
            for row in rows:
                print(json.dumps(row))
            return
        from rich.console import Console
        from rich.table import Table

        table = Table(
            title=f"{len(rows)} objects, frame {array.header.frame_id}",
            title_justify="left",
        )
        for heading in ("id", "type", "x m", "y m", "z m", "offset m", "ground"):
            table.add_column(heading, justify="right")

        for row in rows:
            position = [f"{value:.3f}" for value in row["position"]]
            ground = "RflySim3D's" if row["ground_packet"] else "terrain"
            table.add_row(
                str(row["id"]),
                str(row["type"]),
                *position,
                f"{row['offset']:.3f}",
                ground,
            )
        Console(width=None if sys.stdout.isatty() else 160).print(table)


def _point(pose: Any) -> str:
    """Return a pose's position as text."""
    p = pose.position
    return f"{p.x:.3f} {p.y:.3f} {p.z:.3f}"


def _note(answer: Any) -> str:
    """Return the bridge's remark, if it has one."""
    return f", {answer.message}" if answer.message else ""


class FaultClient(CommandClient):
    """Client that raises ConfigError if the simulation refuses, or none answers."""

    def __init__(self, namespace: str) -> None:
        super().__init__("rfly_fault", namespace, "amphibious_sim_node", ConfigError)

    def inject(
        self, part: str, kind: str, quantity: str, value: Sequence[float], duration: float
    ) -> None:
        """Break or mend a part; `duration` in s, 0: until it is mended."""
        request = InjectFault.Request(
            part=part, kind=kind, quantity=quantity, value=list(value), duration_s=duration
        )
        self.call(InjectFault, "amphibious_sim_node/inject_fault", request)
