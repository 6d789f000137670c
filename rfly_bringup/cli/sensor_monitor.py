# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Monitor of what RflySim3D's sensors send, for `rfly sensors listen`."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from rfly_bringup.terminal import printable
from rfly_bringup.topic_recording.sensor_log import SensorLog
from rfly_common.errors import ConfigError, FeedbackError
from rfly_common.files import write_array, write_whole
from rfly_common.startup import stop_by_signal
from rfly_ue_bridge.codec.sensor_payloads import encode_image, sensor_type
from rfly_ue_bridge.codec.sensor_requests import RequestLayout, VisionSensor, encode_request
from rfly_ue_bridge.sensors.frame_assembler import (
    FrameAssembler,
    FrameQueue,
    JoinedFrame,
    SensorFrame,
)
from rfly_ue_bridge.sensors.vision_config import VisionConfig, to_own_address
from rfly_ue_bridge.sockets.sensor_receiver import SensorReceiver
from rfly_ue_bridge.sockets.udp_sender import UdpSender

REPORT_PERIOD_S = 2.0
REQUEST_AGAIN_S = 3.0
_POLL_S = 0.1
_QUEUE = 256
"""Complete frames of all sensors that wait for decoding; `FrameQueue` bounds their bytes, too."""
_LOSSES = (
    "incomplete", "contradictions", "undecodable", "unexpected_size", "not_in_time", "length",
    "checksum", "header",
)  # fmt: skip


class _Source:
    """One sensor, its frames, and its counts at the last report."""

    def __init__(self, sensor: VisionSensor, frames: FrameQueue[_Arrived]) -> None:
        self.sensor = sensor
        self.assembler = FrameAssembler(sensor)
        self.heard_s = 0.0
        self.requested_s = 0.0
        self.saved = 0
        self.frames_before = 0
        self.bytes_before = 0
        self._frames = frames

    def take(self, datagram: bytes, arrival_s: float) -> None:
        """Take a datagram, in the receiver's thread."""
        self.heard_s = arrival_s
        joined = self.assembler.join(datagram, arrival_s)
        if joined is not None:
            for source, _ in self._frames.put((self, joined), len(joined.payload)):
                source.assembler.counters["not_in_time"] += 1


_Arrived = tuple[_Source, JoinedFrame]


class SensorMonitor:
    """Monitor of the sensors of a configuration, whose window listens on `port` of `host`.

    `bind`: address to listen on.
    `save`: folder for the frames, without any of another run; `mcap`: file for them. Raises OSError
    and ConfigError for a file or the folder.
    """

    def __init__(
        self,
        config: Path,
        host: str,
        port: int,
        bind: str,
        layout: RequestLayout,
        save: Path | None,
        mcap: Path | None,
    ) -> None:
        self._console = Console(highlight=False)
        read = VisionConfig.read(config)
        for warning in read.warnings:
            self._console.print(printable(f"{config}: {warning}"), markup=False, style="yellow")

        self._layout = layout
        self._save = save
        if save is not None:
            save.mkdir(parents=True, exist_ok=True)
            if any(save.glob("sensor[0-9]*_*.*")):
                raise FileExistsError(f"{save} holds frames already; choose another folder")
        self._frames: FrameQueue[_Arrived] = FrameQueue(_QUEUE)
        self._bind = bind
        self._sources = [_Source(to_own_address(s, host, bind), self._frames) for s in read.sensors]
        self._sender = UdpSender(host, port)
        self._log = None if mcap is None else SensorLog(mcap)  # last: a mistake leaves no file
        self._start_s = self._reported_s = time.monotonic()

    def run(self, *, request: bool, count: int, duration_s: float) -> bool:
        """Listen and report until the end; return whether every sensor has sent something.

        Raises ConfigError for a port that cannot be opened.
        """
        handlers = {source.sensor.port: source.take for source in self._sources}
        try:
            receiver = SensorReceiver(handlers, self._bind, tick=self._give_up_old)
        except FeedbackError as error:
            raise ConfigError(f"{error}: ue_sensors_node or RflySim's SDK?") from error

        seen = 0
        with receiver, stop_by_signal() as stopped:
            while not stopped() and (not count or seen < count):
                now_s = time.monotonic()
                if duration_s and now_s - self._start_s > duration_s:
                    break
                if request:
                    self._request_silent(now_s)
                seen += self._take_frame()
                if now_s - self._reported_s > REPORT_PERIOD_S:
                    self._report(now_s)
            self._report(time.monotonic())
        self._sender.close()
        if self._log is not None:
            self._log.close()
        return all(source.assembler.counters["datagrams"] for source in self._sources)

    def _give_up_old(self, now_s: float) -> None:
        """Forget incomplete frames that have waited for too long, in the receiver's thread."""
        for source in self._sources:
            source.assembler.give_up_old(now_s)

    def _request_silent(self, now_s: float) -> None:
        for source in self._sources:
            if now_s - max(source.heard_s, source.requested_s) > REQUEST_AGAIN_S:
                source.requested_s = now_s
                self._sender.send(encode_request(source.sensor, self._layout))

    def _take_frame(self) -> int:
        """Wait for a frame and save it; return the number of frames."""
        arrived = self._frames.get(_POLL_S)
        if arrived is None:
            return 0
        source, joined = arrived
        frame = source.assembler.decode(joined)
        if frame is None:
            return 1

        if self._log is not None:
            late_s = time.monotonic() - frame.arrival
            self._log.write(source.sensor, frame, time.time_ns() - round(late_s * 1e9))
        if self._save is not None:
            source.saved += 1
            _write(frame, source.saved, self._save)
        return 1

    def _report(self, now_s: float) -> None:
        """Print a line for each sensor, over the time since the last report."""
        elapsed_s = max(now_s - self._reported_s, 1e-3)
        self._reported_s = now_s
        table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
        for heading in ("sensor", "kind", "port", "Hz", "MB/s", "frames", "lost"):
            table.add_column(heading, no_wrap=True)

        for source in self._sources:
            counters = source.assembler.counters
            rate = (counters["frames"] - source.frames_before) / elapsed_s
            megabytes = (counters["bytes"] - source.bytes_before) / elapsed_s / 1e6
            source.frames_before = counters["frames"]
            source.bytes_before = counters["bytes"]
            lost = ", ".join(f"{name} {counters[name]}" for name in _LOSSES if counters[name])
            if not counters["datagrams"]:
                lost = "no data yet"
            table.add_row(
                str(source.sensor.seq_id),
                sensor_type(source.sensor.type_id).name,
                str(source.sensor.port),
                f"{rate:.1f}",
                f"{megabytes:.2f}",
                str(counters["frames"]),
                lost,
            )
        self._console.print(table)


def _write(frame: SensorFrame, number: int, folder: Path) -> None:
    """Write a frame to a folder: a picture as it came, anything else as an array."""
    stem = folder / f"sensor{frame.seq_id}_{number:06d}"
    if frame.form == "jpeg":
        write_whole(stem.with_suffix(".jpg"), frame.payload)
    elif frame.form == "png":
        write_whole(stem.with_suffix(".png"), frame.payload)
    elif frame.form == "raw":
        write_whole(stem.with_suffix(".png"), encode_image(frame.data, "png"))
    else:
        write_array(stem.with_suffix(".npy"), frame.data)
