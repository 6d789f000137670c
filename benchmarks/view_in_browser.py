# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Speed of `rfly view`, measured in the browser: frames per second, delay, its own load.

    python -m benchmarks.view_in_browser [--vehicles 100] [--hz 50] [--packets fleet|single]
        [--seconds 20] [--angle swiftshader|swiftshader-webgl]

The first picture of the ground is the first draw of 10,000 indices or more, timed from the request
of the page until the drawing is done. A script in the page counts the frames that WebGL draws.
After each it reads the pixel where a marker appears and disappears. Its time of day less that of
the datagram is the delay: socket, viewer, WebSocket, browser and drawing.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "test"))
from chromium_harness import Chromium
from node_harness import wait_until

from rfly_ue_bridge.codec.commands import encode_command
from rfly_ue_bridge.codec.to_rflysim3d import (
    MULTI3D_DATA_100_NEW,
    SOUT2_SIMULATOR_SIMPLE_TIME,
)

WIDTH = 1280
HEIGHT = 720
MARKER_ID = 34  # drawn in red
MARKER_EVERY_S = 0.8
FIRST = "first picture of the ground (s)"

_WATCH = """
window.rfly = {drawn: 0, seen: [], red: false, x: 0, y: 0, ground: 0, begun: false};
let gl = null;
for (const name of ['drawElements', 'drawArrays', 'drawElementsInstanced', 'drawArraysInstanced']) {
  const draw = WebGL2RenderingContext.prototype[name];
  WebGL2RenderingContext.prototype[name] = function (...a) {
    if (this.canvas.clientWidth > 300) gl = this;
    draw.apply(this, a);
    if (!rfly.begun && name === 'drawElements' && a[1] >= 10000) {
      rfly.begun = true;
      const fence = this.fenceSync(this.SYNC_GPU_COMMANDS_COMPLETE, 0);
      const look = () => {
        const is_done = this.getSyncParameter(fence, this.SYNC_STATUS) === this.SIGNALED;
        if (is_done) rfly.ground = performance.now() / 1000;
        else setTimeout(look, 4);
      };
      setTimeout(look);
    }
  };
}
const ask = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (callback) => ask((t) => {
  callback(t);
  if (!gl) return;
  const canvas = gl.canvas;
  rfly.drawn += 1;
  const bound = gl.getParameter(gl.FRAMEBUFFER_BINDING), rgba = new Uint8Array(4);
  const scale = canvas.width / canvas.clientWidth;
  gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  const x = rfly.x * scale, y = canvas.height - rfly.y * scale;
  gl.readPixels(x, y, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, rgba);
  gl.bindFramebuffer(gl.FRAMEBUFFER, bound);
  const red = rgba[0] > 90 && rgba[0] > 2 * rgba[1] && rgba[0] > 2 * rgba[2];
  if (red !== rfly.red) {
    rfly.red = red;
    rfly.seen.push((performance.timeOrigin + performance.now()) / 1000);
  }
  gl = null;
});
"""


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process, s (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Fleet(threading.Thread):
    """A thread that sends circling multirotors, 100 in a packet or each by itself, at a rate."""

    def __init__(self, port: int, vehicles: int, hz: float, single: bool) -> None:
        super().__init__(daemon=True)
        self._address = ("127.0.0.1", port)
        self._vehicles = vehicles
        self._hz = hz
        self._single = single
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.stop = threading.Event()
        self.packets = 0

    def run(self) -> None:
        """Send the fleet until stopped."""
        n = self._vehicles
        due = time.monotonic()
        angle = np.arange(n) * 2 * np.pi / n
        ring = np.where(np.arange(n) % 2, 12.0, 18.0)
        kind = SOUT2_SIMULATOR_SIMPLE_TIME if self._single else MULTI3D_DATA_100_NEW

        while not self.stop.is_set():
            # a moment of the circle
            turned = angle + 0.3 * time.monotonic()
            position = np.column_stack(
                [45 + ring * np.cos(turned), ring * np.sin(turned), np.full(n, -6.0)]
            )
            euler = np.column_stack([np.zeros((n, 2)), turned + np.pi / 2])

            # as packets
            if self._single:
                records = np.zeros(n, kind.dtype)
                records["copterID"] = np.arange(n) + 1001
                records["vehicleType"] = 3
                records["MotorRPMS"] = 4000
                records["PosE"] = position
                records["AngEuler"] = euler
            else:
                records = np.zeros(-(-n // 100), kind.dtype)
                columns = {
                    "copterID": np.arange(n) + 1001,
                    "vehicleType": np.full(n, 3),
                    "MotorRPMSMean": np.full(n, 4000.0),
                    "Scale": np.full(3 * n, 100),
                    "PosE": position.ravel(),
                    "AngEuler": euler.ravel(),
                }
                for name, values in columns.items():
                    flat = np.zeros(records[name].size)
                    flat[: len(values)] = values
                    records[name] = flat.reshape(records[name].shape)

            # send them, and wait
            records["checksum"] = kind.checksums[0]
            for record in records:
                self._socket.sendto(record.tobytes(), self._address)
            self.packets += len(records)
            due += 1 / self._hz
            self.stop.wait(max(0.0, due - time.monotonic()))


def measure(
    vehicles: int, hz: float, single: bool, seconds: float, angle: str, options: list[str]
) -> dict[str, float]:
    """Return the figures of one run with a viewer, a browser and a fleet."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    # the viewer
    rfly = "import sys; from rfly_bringup.cli.main import main; sys.argv[0] = 'rfly'; main()"
    command = [
        sys.executable,
        "-c",
        rfly,
        "view",
        "--port",
        "0",
        "--udp-port",
        str(port),
        *options,
    ]
    viewer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    fleet = Fleet(port, vehicles, hz, single)

    def marker(down: float) -> float:
        """Show or hide the marker; return the time."""
        sent = time.time()
        raw = struct.pack("<3i7f", 1234567890, MARKER_ID, 9999, 0.0, 20.0, 0.0, down, 0.0, 0.0, 0.0)
        sender.sendto(raw, ("127.0.0.1", port))
        return sent

    try:
        assert viewer.stdout is not None
        address = re.search(r"http://\S+", viewer.stdout.readline())
        assert address is not None
        with Chromium(WIDTH, HEIGHT, angle) as page:
            page.before_load(_WATCH)
            page.open(address[0])

            # wait for the scene and the ground
            wait_until(
                lambda: page.evaluate("document.querySelector('canvas') !== null"),
                "the scene",
            )
            first = (
                wait_until(lambda: page.evaluate("rfly.ground"), "the ground")
                if "" not in options
                else np.nan
            )
            if seconds == 0.0:
                return {FIRST: first}

            # look down at the marker
            for text in ("RflyCameraPosAng 0 0 -20 0 -45 0", "RflyCameraFovDegrees 90"):
                sender.sendto(encode_command(text), ("127.0.0.1", port))
            page.evaluate(f"Object.assign(rfly, {{x: {WIDTH / 2}, y: {HEIGHT / 2 - 8}}}) && 0")

            # wait for the fleet and the marker
            fleet.start()
            marker(-0.5)
            wait_until(lambda: page.evaluate("rfly.red"), "the marker")
            wait_until(lambda: page.evaluate("rfly.drawn") > 20, "20 pictures")

            # measure
            page.evaluate("rfly.seen = []")
            begin = time.monotonic()
            cpu = cpu_seconds(viewer.pid)
            drawn = page.evaluate("rfly.drawn")
            packets = fleet.packets
            sent = []
            above = True
            while time.monotonic() - begin < seconds:
                above = not above
                sent.append(marker(-0.5 if above else 500.0))
                time.sleep(MARKER_EVERY_S)

            lasted = time.monotonic() - begin
            cpu = cpu_seconds(viewer.pid) - cpu
            drawn = page.evaluate("rfly.drawn") - drawn
            packets = fleet.packets - packets
            seen = np.array(page.evaluate("rfly.seen"))

        # none is seen where a picture takes longer than a marker stands
        delays = np.array(
            [after.min() - time_sent for time_sent in sent if len(after := seen[seen > time_sent])]
            or [np.nan]
        )
        return {
            FIRST: first,
            "packets a second": packets / lasted,
            "pictures a second": drawn / lasted,
            "delay, median (ms)": float(np.median(delays)) * 1e3,
            "delay, 99th percentile (ms)": float(np.percentile(delays, 99)) * 1e3,
            "markers seen of those sent (%)": 100 * len(seen) / len(sent),
            "viewer's load (cores)": cpu / lasted,
        }
    finally:
        fleet.stop.set()
        sender.close()
        viewer.terminate()
        viewer.wait(10)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vehicles", type=int, default=100)
    parser.add_argument("--hz", type=float, default=50.0)
    parser.add_argument("--packets", choices=("fleet", "single"), default="fleet")
    parser.add_argument("--seconds", type=float, default=20.0, help="0: the first picture only")
    parser.add_argument("--map", default="JacksboroFault", help="'' for flat ground")
    parser.add_argument(
        "--angle",
        choices=("swiftshader", "swiftshader-webgl"),
        default="swiftshader",
        help="what draws: the page too, or WebGL only, as Chromium does without a graphics card",
    )
    parser.add_argument("--shadows", action=argparse.BooleanOptionalAction, default=True)
    wanted = parser.parse_args()
    options = ["--map", wanted.map, "--shadows" if wanted.shadows else "--no-shadows"]
    print(
        f"{wanted.vehicles} multirotors at {wanted.hz:g} Hz, {wanted.packets} packets, {WIDTH} x "
        f"{HEIGHT} pixels, "
        f"map {wanted.map or 'none'}, {'with' if wanted.shadows else 'no'} shadows; Chromium draws "
        "in software "
        f"(SwiftShader) on {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}"
    )

    for name, value in measure(
        wanted.vehicles,
        wanted.hz,
        wanted.packets == "single",
        wanted.seconds,
        wanted.angle,
        options,
    ).items():
        print(f"  {name:32} {value:8.2f}")


if __name__ == "__main__":
    main()
