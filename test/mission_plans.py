# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Contents of mission files as QGroundControl writes them."""

import json

import numpy as np

from rfly_missions.mission.files import read_mission

HOME = (47.0, 8.0, 500.0)


def simple(command, frame, params, **more):
    """Return a SimpleItem of a .plan."""
    return {"type": "SimpleItem", "command": command, "frame": frame, "params": params, **more}


def plan(*items, **changes):
    """Return a .plan of items, with changes of its keys."""
    mission = {"plannedHomePosition": list(HOME), "items": list(items), "version": 2}
    return {
        "fileType": "Plan",
        "version": 1,
        "groundStation": "QGroundControl",
        "mission": mission,
        **changes,
    }


def reader_in(folder):
    """Return a function that writes the content of a .plan into a folder, and reads it."""

    def read(content, **options):
        path = folder / "some.plan"
        path.write_text(
            content if isinstance(content, str) else json.dumps(content), encoding="utf-8"
        )
        return read_mission(path, **options)

    return read


TAKEOFF = simple(22, 3, [15, 0, 0, None, 47.0, 8.0, 20])
FAR = simple(16, 3, [5, 3, 0, 90, 47.001, 8.0, 30])
SURVEY = {
    "type": "ComplexItem",
    "complexItemType": "survey",
    "TransectStyleComplexItem": {
        "Items": [
            simple(16, 3, [0, 0, 0, None, 47.001, 8.0, 30], doJumpId=2),
            simple(206, 2, [25, 0, 1, 0, 0, 0, 0], doJumpId=3),
            simple(16, 3, [0, 0, 0, None, 47.001, 8.001, 30], doJumpId=4),
            simple(206, 2, [0, 0, 1, 0, 0, 0, 0], doJumpId=5),
        ]
    },
}
FENCE = {
    "polygons": [
        {"inclusion": True, "polygon": [[46.99, 7.99], [46.99, 8.01], [47.01, 8.01], [47.01, 7.99]]}
    ],
    "circles": [{"inclusion": False, "circle": {"center": [47.001, 8.0], "radius": 50}}],
    "version": 2,
}
LANDING = {
    "type": "ComplexItem",
    "complexItemType": "fwLandingPattern",
    "altitudesAreRelative": True,
    "landCoordinate": [47.0, 8.0, 0],
    "landingApproachCoordinate": [47.001, 8.0, 40],
    "loiterRadius": 75,
    "loiterClockwise": False,
    "stopTakingPhotos": True,
    "stopVideoPhotos": True,
    "useLoiterToAlt": True,
    "version": 2,
}
WPL = """# a remark
QGC WPL 110
0\t1\t0\t16\t0\t0\t0\t0\t47.0\t8.0\t500.0\t1
1   0  3 22 15 0 0 nan 47.0 8.0 20 1
# another
2\t0\t3\t16\t5\t3\t0\t90\t47.001\t8.0\t30\t1
3\t0\t2\t177\t2\t1\t0\t0\t0\t0\t0\t1
"""


def same(actual, expected):
    assert len(actual) == len(expected)
    for a, b in zip(actual, expected, strict=True):
        assert (a.mode, a.command, a.here) == (b.mode, b.command, b.here)
        np.testing.assert_allclose(a.position, b.position, atol=1e-6)
        np.testing.assert_allclose(a.params, b.params, atol=1e-9)
