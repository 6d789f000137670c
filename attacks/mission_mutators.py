# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Missions: a QGroundControl plan, its mutations, and the text of a `.waypoints` file."""

from __future__ import annotations

import json
import math
import random
from typing import Any

from attacks.text_mutators import Files, mutated_text, mutated_tree


def _simple(command: int, frame: int, *params: float | None) -> dict[str, Any]:
    """Return a simple item of a plan: one MAVLink command."""
    return {
        "type": "SimpleItem",
        "command": command,
        "frame": frame,
        "params": list(params),
        "autoContinue": True,
    }


_POINT = _simple(16, 3, 0, 0, 0, None, 47.001, 8.0, 20)
SCAN = {
    "type": "ComplexItem",
    "complexItemType": "StructureScan",
    "version": 3,
    "Altitude": 20,
    "EntranceAltitude": 20,
    "StructureHeight": 25,
    "Layers": 2,
    "ScanBottomAlt": 5,
    "StartFromTop": False,
    "GimbalPitch": 0,
    "CameraCalc": {
        "AdjustedFootprintFrontal": 10,
        "AdjustedFootprintSide": 5,
        "DistanceToSurface": 10,
    },
    "polygon": [[47.0, 8.0], [47.001, 8.0], [47.0, 8.001]],
}
_LANDING = {
    "type": "ComplexItem",
    "complexItemType": "vtolLandingPattern",
    "version": 1,
    "altitudesAreRelative": True,
    "landCoordinate": [47.0, 8.0, 0],
    "landingApproachCoordinate": [47.01, 8.0, 40],
    "loiterRadius": 50,
    "loiterClockwise": False,
    "useLoiterToAlt": True,
    "stopTakingPhotos": True,
    "stopVideoPhotos": True,
}
PLAN: dict[str, Any] = {
    "fileType": "Plan",
    "version": 1,
    "groundStation": "QGroundControl",
    "geoFence": {
        "circles": [
            {
                "circle": {"center": [47.0, 8.0], "radius": 500},
                "inclusion": True,
                "version": 1,
            }
        ],
        "polygons": [
            {
                "polygon": [[47.0, 8.0], [47.1, 8.0], [47.0, 8.1]],
                "inclusion": True,
                "version": 1,
            }
        ],
        "version": 2,
    },
    "mission": {
        "version": 2,
        "plannedHomePosition": [47.0, 8.0, 500.0],
        "items": [
            {**_simple(22, 3, 0, 0, 0, None, 47.0, 8.0, 20), "doJumpId": 1},
            {**_POINT, "doJumpId": 2},
            {**_simple(177, 2, 2, 3, 0, 0, 0, 0, 0), "doJumpId": 3},
            {
                "type": "ComplexItem",
                "complexItemType": "survey",
                "TransectStyleComplexItem": {"Items": [_POINT]},
            },
            SCAN,
            _LANDING,
        ],
    },
    "rallyPoints": {"points": [[47.0, 8.0, 50]], "version": 2},
}
WAYPOINTS = (
    "QGC WPL 110\n0\t1\t0\t16\t0\t0\t0\t0\t47\t8\t500\t1\n"
    "1\t0\t3\t22\t0\t0\t0\t0\t47\t8\t20\t1\n2\t0\t3\t16\t1\t2\t0\t0\t47.001\t8\t20\t1\n"
)


def plan(rng: random.Random) -> Files:
    """Return a mutated plan: of its tree or of its text."""
    if rng.random() < 0.7:
        return {".plan": json.dumps(mutated_tree(rng, PLAN)).encode("utf-8", "surrogatepass")}
    return {".plan": mutated_text(rng, json.dumps(PLAN).encode())}


def scan_bomb() -> bytes:
    """Return a thousand layers around a structure of a thousand corners."""
    corners = [
        [47.0 + 0.01 * math.cos(n), 8.0 + 0.01 * math.sin(n)]
        for n in (math.tau * k / 1000 for k in range(1000))
    ]
    scan = {**SCAN, "Layers": 1000, "polygon": corners}
    return json.dumps({**PLAN, "mission": {**PLAN["mission"], "items": [scan] * 10}}).encode()
