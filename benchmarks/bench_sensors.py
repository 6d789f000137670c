# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""RflySim3D's cameras and lidars through ue_sensors_node, beside a loop in the SDK's way.

Four cameras of 640 x 480 pixels send a jpeg 30 times a second, all at once; a Livox Mid-360 sends
200,000 points a second. Processor time is that of the node's process, which decodes and publishes
everything to a subscriber in another process. The delay is the node's own, from the last fragment
to the end of publishing.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from benchmarks.bench_fleet_wire import processor_seconds
from benchmarks.budgets import SCALED, scaled
from benchmarks.harness import DISAGREES, Row, agreement, lasting
from rfly_ue_bridge import encode_cloud, encode_fragments, encode_image

SECONDS = lasting("RFLY_SENSOR_SECONDS", 10.0)
SETTLED_S = 6.0
LAST_S = 4.0
LAST_RATE = 5.0
CAMERAS = 4
CAMERA_RATE = 30.0
POINTS = 17_408
POINT_RATE = 200_000.0
CAMERA_CORES = 0.5
LIDAR_CORES = 0.1
MOST_DELAY_S = 0.003
MOST_LOST = 0.02
"""Share of the frames that the node may lose."""
LOSSES = ("incomplete", "not_in_time", "undecodable", "system_dropped")
HERE = Path(__file__).parent


def rows() -> Iterator[Row]:
    """Yield processor time and delay of cameras and of a lidar."""
    try:
        import rclpy  # noqa: F401
    except ImportError:
        print("sensors need ROS 2 (rclpy): not measured", file=sys.stderr)
        return

    lidar_rate = POINT_RATE / POINTS
    yield from _rows(
        "4 cameras 640 x 480, jpeg, 30 Hz", "image", CAMERAS, CAMERA_RATE, CAMERA_CORES
    )
    yield from _rows("Mid-360, 200,000 points/s", "cloud", 1, lidar_rate, LIDAR_CORES)


def _rows(name: str, kind: str, count: int, rate: float, budget: float) -> Iterator[Row]:
    frames = _pictures() if kind == "image" else _clouds()
    ours = _run(kind, count, rate, frames, in_sdks_way=False)
    sdk = _run(kind, count, rate, frames, in_sdks_way=True)

    statuses = ours["statuses"].values()
    lost = max((sum(s[reason] for reason in LOSSES) for s in statuses), default=np.inf)
    means = [[found["mean"].get(str(k), np.nan) for k in range(count)] for found in (ours, sdk)]
    agree = agreement(*means, 1e-4, "in the mean number of the last message")
    if lost > MOST_LOST * ours["sent"]:
        agree = f"{DISAGREES}: {lost:.0f} of {ours['sent']} frames are lost"
    yield Row(
        f"{name}: processor time of ue_sensors_node",
        ours["cores"],
        scaled(budget),
        f"{budget:g} of a core, {SCALED}",
        1.0,
        agree=agree,
        note=f"{ours['cores']:.3f} of a core, a loop in the SDK's way {sdk['cores']:.3f}",
        kind="at most",
        unit="cores",
    )
    delay = statistics.median([s["latency_ms"] for s in statuses] or [np.nan]) / 1e3
    yield Row(
        f"{name}: last fragment → published, median",
        delay,
        scaled(MOST_DELAY_S),
        f"3 ms, {SCALED}",
        1.0,
        agree=agree,
        kind="at most",
    )


def _pictures() -> list[bytes]:
    """Return jpegs of a scene with edges, gradients and a little noise."""
    rng = np.random.default_rng(1)
    y, x = np.mgrid[:480, :640]
    frames = []
    for shift in range(8):
        grey = 90 + 60 * np.sin((x + 9 * shift) / 40.0) + y / 8 + rng.normal(0, 3, (480, 640))
        picture = cv2.applyColorMap(np.clip(grey, 0, 255).astype(np.uint8), cv2.COLORMAP_BONE)
        for box in range(12):
            corner = (50 * box + 5 * shift, 150 + 15 * box)
            colour = tuple(int(c) for c in rng.integers(0, 255, 3))
            cv2.rectangle(picture, corner, (corner[0] + 40, corner[1] + 60), colour, -1)
        frames.append(encode_image(picture))
    return frames


def _clouds() -> list[bytes]:
    """Return int16 clouds without misses."""
    rng = np.random.default_rng(2)
    return [encode_cloud(rng.uniform(1, 90, (POINTS, 4)), 100.0) for _ in range(4)]


def _run(
    kind: str, count: int, rate: float, frames: list[bytes], *, in_sdks_way: bool
) -> dict[str, Any]:
    """Return cores, messages and statuses of one of the two programs."""
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    environment = {**os.environ, "ROS_DOMAIN_ID": str(1 + (os.getpid() + 70) % 100)}
    with ExitStack() as opened:
        out = opened.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        ports = _free_ports(count)
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        command = [sys.executable, str(HERE / "sdk_sensor_node.py"), kind, *map(str, ports)]
        if not in_sdks_way:
            config = _config(kind, ports, folder)
            command = [str(Path(sys.prefix) / "lib" / "rfly_suite" / "ue_sensors_node")]
            command += ["--ros-args", "-p", f"config:={config}", "-p", "request_period:=0.0"]

        sink = subprocess.Popen(
            [sys.executable, str(HERE / "sensor_sink.py"), kind, str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        node = subprocess.Popen(command, env=environment)
        try:
            # until both know each other
            settled = _send(out, ports, frames, rate, SETTLED_S, 0)
            before = processor_seconds(node.pid)
            start = time.monotonic()
            sent = _send(out, ports, frames, rate, SECONDS, settled)
            cores = (processor_seconds(node.pid) - before) / (time.monotonic() - start)
            # the last message must arrive, and a status
            _send(out, ports, frames[:1], LAST_RATE, LAST_S, 100_000)
            result = json.loads(sink.communicate("", timeout=30.0)[0])
        finally:
            node.send_signal(signal.SIGINT)
            node.wait(20.0)
            sink.kill()
    return {**result, "cores": cores, "sent": sent}


def _send(
    out: socket.socket,
    ports: list[int],
    frames: list[bytes],
    rate: float,
    seconds: float,
    first: int,
) -> int:
    """Send frames to all ports at a rate; return their number for each port."""
    start = time.monotonic()
    number = round(seconds * rate)
    for k in range(number):
        time.sleep(max(0.0, start + k / rate - time.monotonic()))
        datagrams = encode_fragments(frames[k % len(frames)], (first + k) / rate, first + k)
        for port in ports:
            for datagram in datagrams:
                out.sendto(datagram, ("127.0.0.1", port))
    return number


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for opened in sockets:
        opened.bind(("127.0.0.1", 0))
    ports = [opened.getsockname()[1] for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports


def _config(kind: str, ports: list[int], folder: Path) -> Path:
    """Return the path of a Config.json for these ports."""
    entries = [
        {
            "SeqID": number,
            "TypeID": 1 if kind == "image" else 23,
            "TargetCopter": 1,
            "TargetMountType": 0,
            "DataWidth": 640,
            "DataHeight": 480,
            "DataCheckFreq": 30,
            "SendProtocol": [1, 127, 0, 0, 1, port, 0, 0],
            "CameraFOV": 90,
            "SensorPosXYZ": [0, 0, 0],
            "SensorAngEular": [0, 0, 0],
            "otherParams": [100.0] + [0.0] * 7,
        }
        for number, port in enumerate(ports)
    ]
    path = folder / "Config.json"
    path.write_text(json.dumps({"VisionSensors": entries}), encoding="utf-8")
    return path
