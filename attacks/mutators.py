# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Tables of makers of files for `attacks.files`.

Each maker returns the bytes of files by their endings; the first one is read. MAKERS mutate a good
file of their kind. BOMBS are files that become far larger than they are, or take long.
"""

from __future__ import annotations

import struct

import numpy as np

from attacks import container_mutators as containers
from attacks.binary_mutators import (
    capture,
    map_files,
    mutated_tiff,
    npy,
    npz_bomb,
    npz_of,
    occupancy_files,
    png_bomb,
)
from attacks.mission_mutators import WAYPOINTS, plan, scan_bomb
from attacks.raster_mutators import placed_raster
from attacks.text_mutators import Maker, text_of, yaml_of

GPX = (
    '<?xml version="1.0"?><gpx version="1.1" '
    'xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>'
    '<trkpt lat="47.0" lon="8.0"><ele>500</ele></trkpt><trkpt lat="47.001" '
    'lon="8.001"><ele>510</ele></trkpt>'
    "</trkseg></trk></gpx>"
)
OSM = '<osm version="0.6">\n' + "".join(
    f'<node id="{n}" lat="{47.0 + lat}" lon="{8.0 + lon}"/>\n'
    for n, (lat, lon) in enumerate(
        (
            (0.0, 0.0),
            (0.0, 0.001),
            (0.001, 0.001),
            (0.001, 0.0),
            (2e-4, 2e-4),
            (2e-4, 4e-4),
            (4e-4, 3e-4),
        )
    )
)
OSM += (
    '<way id="8"><nd ref="0"/><nd ref="1"/><nd ref="2"/><nd ref="3"/><nd ref="0"/><tag '
    'k="building" v="yes"/>'
    '<tag k="height" v="12 m"/><tag k="building:levels" v="3"/></way>\n'
    '<way id="9"><nd ref="4"/><nd ref="5"/><nd ref="6"/><nd ref="4"/></way>\n'
    '<relation id="10"><member type="way" ref="8" role="outer"/><member type="way" ref="9" '
    'role="inner"/>'
    '<tag k="type" v="multipolygon"/><tag k="building" v="yes"/></relation>\n</osm>\n'
)
VEHICLE = (
    '<?xml version="1.0" encoding="utf-8"?>\n<vehicle>\n  <ClassID>3</ClassID><Name>quad</Name>\n '
    " <body>\n"
    "    <ModelType>0</ModelType><CenterHeightAboveGroundCm>12.5</CenterHeightAboveGroundCm>\n  "
    "</body>\n</vehicle>\n"
)
PATH = (
    "header:\n  frame_id: map\nposes:\n- header: {frame_id: map}\n  pose:\n    position: {x: 1.0, "
    "y: 2.0, z: 3.0}\n"
    "    orientation: {x: 0.0, y: 0.0, z: 0.0, w: 1.0}\n- header: {frame_id: map}\n  pose:\n"
    "    position: {x: 10.0, y: 2.0, z: 3.0}\n    orientation: {x: 0.0, y: 0.0, z: 0.0, w: "
    "1.0}\n---\n"
)
PARAMETERS = (
    "/**:\n  ros__parameters:\n    rate: 50.0\n    vehicles: [a, b]\n"
    "terrain_node:\n  ros__parameters: {map: x}\n"
)
GRID = (
    "ncols 4\nnrows 3\nxllcorner 8.0\nyllcorner 47.0\ncellsize 0.001\nNODATA_value -9999\n"
    + "1 2 3 4\n" * 3
)

MAKERS: dict[str, Maker] = {
    "map": map_files,
    "npy": lambda rng: {".npy": npy(rng)},
    "npz": npz_of(
        heights_up=np.eye(3),
        x_east=np.arange(3.0),
        y_north=np.arange(3.0),
        geo_origin=np.zeros(3),
    ),
    "geotiff": mutated_tiff,
    "placed geotiff": placed_raster,
    "ascii grid": text_of(".asc", GRID),
    "occupancy map": occupancy_files,
    "points": text_of(".csv", "x,y\n1,2\n3,4\n", "1 2\n3 4\n", "1;2;7\n"),
    "waypoints csv": text_of(
        ".csv", "x,y,z\n1,2,3\n4,5,6\n", "lat,lon,alt\n47,8,500\n47.1,8.1,510\n"
    ),
    "waypoints npy": lambda rng: {".npy": npy(rng)},
    "gpx": text_of(".gpx", GPX),
    "path yaml": text_of(".yaml", PATH),
    "plan": plan,
    "waypoints mission": text_of(".waypoints", WAYPOINTS),
    "pcap": capture(ng=False),
    "pcapng": capture(ng=True),
    "vehicle xml": text_of(".xml", VEHICLE),
    "parameter file": text_of(".yaml", PARAMETERS),
    "fleet": yaml_of("rfly_trajectory/data/fleets/demo_convoy.yaml"),
    "placements": yaml_of("rfly_ue_bridge/data/placements/grasslands_targets.yaml"),
    "placements csv": text_of(
        ".csv",
        "id,type,x,y,z,yaw_deg,offset,ground_packet,scale,size\n"
        "1,3,1,2,3,90,,true,1 1 1,\n2,3,1,2,,0,0.5,false,1 1 1,\n",
    ),
    "shapes": yaml_of("rfly_collision/data/shapes/rflysim3d.yaml"),
    "vehicle classes": yaml_of("rfly_terrain/data/vehicle_classes.yaml"),
    "scenario": yaml_of("rfly_amphibious/data/scenarios/hop.yaml"),
    "vehicle": yaml_of("rfly_amphibious/data/vehicles/scale.yaml"),
    "sensors": yaml_of("rfly_amphibious/data/sensors/scale.yaml"),
    "estimator": yaml_of("rfly_autonomy/data/estimators/scale.yaml"),
    "world": yaml_of("rfly_terrain/data/worlds/pillars.yaml"),
    "osm": text_of(".osm", OSM),
    "mesh glb": containers.glb,
    "mesh obj": containers.obj,
    "mat maps": containers.mat_file,
    "mcap": containers.recording,
    "fit log": containers.fit_log,
    "replay log": containers.fit_log,
}

LAUGHS = "a0: &a0 [x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)
YAML_BOMBS: dict[str, Maker] = {
    "aliases that multiply": lambda _: {".yaml": LAUGHS.encode()},
    "an alias of itself": lambda _: {".yaml": b"version: 1\nvehicles: &a [*a, *a]\n"},
    "a merge of itself": lambda _: {".yaml": b"a: &a\n  <<: *a\n"},
    "deep braces": lambda _: {".yaml": b"{" * 500_000},
    "deep lists": lambda _: {".yaml": b"- " * 400_000},
    "a list of a million": lambda _: {
        ".yaml": b"version: 1\nvehicles: [" + b"1," * 490_000 + b"1]\n"
    },
    "a key of a megabyte": lambda _: {".yaml": b"x" * 990_000 + b": 1\n"},
    "a whole number of 5000 digits": lambda _: {".yaml": b"version: " + b"9" * 5000 + b"\n"},
}
_LARGEST_PGM = b"P5\n10000 10000\n255\n"
_LARGEST_YAML = b"image: a.pgm\nresolution: 1\norigin: [0, 0, 0]\n"
_LARGE_RECORD = struct.pack("<IHHiIIIIIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 101, 0, 0, 2**32 - 1, 0)
_PLAN_START = b'{"fileType":"Plan","version":1,"mission":['


def _spiral(points: int) -> bytes:
    """Return points of a hull, as in a list of YAML."""
    return b",".join(b"[%d,%d,%d]" % (n, n * n % 997, n * n * n % 991) for n in range(points))


def _way(corners: int) -> bytes:
    return (
        b'<osm><way id="1"><tag k="building" v="yes"/>'
        + b'<nd ref="1"/>' * corners
        + b"</way></osm>"
    )


BOMBS: dict[str, dict[str, Maker]] = {
    "map": {
        "colour with alpha": png_bomb(10_000, 10_000, 6, 8),
        "as large as can be": png_bomb(10_000, 10_000, 0, 16),
    },
    "npz": {"four times 800 MB": npz_bomb},
    "gpx": {
        "millions of elements": lambda _: {".gpx": b"<gpx>" + b"<a/>" * 2_400_000 + b"</gpx>"},
        "millions deep": lambda _: {".gpx": b"<a>" * 3_000_000},
        "entities": lambda _: {".gpx": b'<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa">]><gpx>&a;</gpx>'},
    },
    "plan": {
        "deep lists": lambda _: {".plan": b'{"a":' + b"[" * 5_000_000},
        "a list of millions": lambda _: {".plan": _PLAN_START + b"1," * 5_000_000 + b"1]}"},
        "a scan of a million items": lambda _: {".plan": scan_bomb()},
    },
    "waypoints csv": {
        "10 MB of digits": lambda _: {".csv": b"9" * 9_900_000},
        "10 MB of commas": lambda _: {".csv": b"," * 9_900_000},
    },
    "points": {"100 MB of points": lambda _: {".csv": b"1,2\n" * 25_000_000}},
    "occupancy map": {
        "as large as can be": lambda _: {
            ".yaml": _LARGEST_YAML,
            "a.pgm": _LARGEST_PGM + bytes(10**8),
        }
    },
    "osm": {
        "millions of elements": lambda _: {".osm": b"<osm>" + b"<tag/>" * 3_000_000 + b"</osm>"},
        "deep": lambda _: {".osm": b"<osm>" * 1_000_000},
        "a way of a million corners": lambda _: {".osm": _way(corners=1_000_000)},
    },
    "pcap": {"one record of 4 GB": lambda _: {".pcap": _LARGE_RECORD}},
    "vehicle xml": {"deep": lambda _: {".xml": b"<vehicle>" * 100_000}},
    **dict.fromkeys(
        (
            "fleet",
            "placements",
            "shapes",
            "vehicle classes",
            "scenario",
            "vehicle",
            "sensors",
            "estimator",
        ),
        YAML_BOMBS,
    ),
    "parameter file": YAML_BOMBS,
    "path yaml": YAML_BOMBS,
    "world": {
        **YAML_BOMBS,
        "four megabytes of boxes": lambda _: {
            ".yaml": b"version: 1\nobjects:\n" + b"- {box: [1, 1, 1], x: 0, y: 0}\n" * 120_000
        },
        "a hull of many": lambda _: {
            ".yaml": b"version: 1\nobjects: [{x: 0, y: 0, hull: [" + _spiral(60_000) + b"]}]\n"
        },
        "a mesh in a pipe's place": lambda _: {
            ".yaml": b"version: 1\nobjects: [{mesh: /dev/stdin, x: 0, y: 0}]\n"
        },
    },
    "mesh glb": {
        "instances of instances": containers.instances_bomb,
        "many instances": containers.many_nodes_bomb,
        "accessors without data": containers.accessor_bomb,
        "deep lists": containers.deep_tree_bomb,
    },
    "mesh obj": {"20 MB of triangles": containers.obj_bomb},
    "mat maps": {"2 GB for four numbers": containers.mat_bomb},
    "mcap": {"a chunk of 4 GB": containers.recording_bomb},
    "fit log": {"a chunk of 4 GB": containers.recording_bomb},
    "replay log": {"a chunk of 4 GB": containers.recording_bomb},
}
