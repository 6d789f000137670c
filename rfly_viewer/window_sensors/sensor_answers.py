# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sensors of the window: requests in, frames out by UDP.

Theory of operation. The window hands over what it shows with `show`, and requests with `request`.
A thread of its own takes the sensor whose frame is due for the longest time, renders and sends it.
A frame that cannot be rendered in time is left out, so many sensors become slow, not late. No
sensor gets two frames of one moment, so the window's own rate is the highest.

Frames go to this machine only, unless other addresses are allowed by name: a request is a datagram
whose sender can be forged, and its answer is a thousand times as large.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import socket
import threading
import time
from collections import deque
from collections.abc import Sequence

from rfly_common.errors import ConfigError, RflyError
from rfly_common.files import Closing
from rfly_common.sockets.udp_sockets import ipv4
from rfly_common.threads.loop_thread import LoopThread
from rfly_sensing.neighbours import world_bodies
from rfly_sensing.scene_rays import SceneBodies
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.imagery.imagery import Imagery
from rfly_terrain.world.weather import Weather
from rfly_terrain.world.world import World
from rfly_ue_bridge.codec.sensor_payloads import encode_fragments
from rfly_ue_bridge.codec.sensor_requests import VisionSensor, read_request
from rfly_viewer.scene.vehicle_table import WorldPoses
from rfly_viewer.window_sensors.sensor_frames import check, encode, measure
from rfly_viewer.window_sensors.window_scene import WindowScene

MAX_SENSORS = 32
DEFAULT_RATE_HZ = 30
"""Rate of a request whose DataCheckFreq is 0, Hz."""
UNHEARD_S = 30.0
"""Time for which a receiver refuses all frames before its sensor is removed, s."""
REFUSAL_GAP_S = 2.0
"""Time without a refusal after which a receiver is there again, s."""
BURST = 3
"""Fragments that are sent at once: as much as a socket holds whose buffer nobody enlarged."""
BURST_GAP_S = 0.001
"""Pause between bursts, s."""
MAX_MESSAGES = 50
_SEND_BUFFER_BYTES = 262_144
_REQUESTER = ("0.0.0.0", "127.0.0.1")
"""Addresses in a request that mean the machine that sent it."""


class _Running:
    """A requested sensor, its socket and its next frame."""

    def __init__(self, sensor: VisionSensor, address: str) -> None:
        self.sensor = sensor
        self.address = address
        self.due = 0.0
        self.number = 0
        """Number of the next frame."""
        self.scene: WindowScene | None = None
        """Scene of the last frame."""
        self.missing = ""
        """Reason for which there is no frame now, as it was told."""
        self.refused_since = 0.0
        self.refused_last = -REFUSAL_GAP_S
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        try:
            self.socket.connect((address, sensor.port))
        except OSError as error:
            self.socket.close()
            raise ConfigError(
                f"sensor {sensor.seq_id}: {address}:{sensor.port}: {error.strerror}"
            ) from error

    @property
    def period(self) -> float:
        """Time between frames, s."""
        return 1.0 / (self.sensor.rate or DEFAULT_RATE_HZ)


class SensorAnswers(Closing):
    """Answers to requests for the sensors of vehicles in a world.

    `allowed`: IPv4 addresses of other machines that may request sensors and receive frames. Raises
    ConfigError for one that is none.
    """

    def __init__(self, world: World | None = None, allowed: Sequence[str] = ()) -> None:
        self._world = world or World()
        self._allowed = {ipv4(address, "allowed") for address in allowed}
        self._start = time.monotonic()
        self._scene: WindowScene | None = None
        self._objects: tuple[HeightMap, SceneBodies | None] | None = None
        self._running: dict[int, _Running] = {}
        self._messages: deque[str] = deque(maxlen=MAX_MESSAGES)
        self._changed = threading.Condition()
        self._closed = False
        self.frames = 0
        """Frames sent so far."""
        self._thread = LoopThread(self._run, "rfly view: sensors")
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Return whether any sensor runs."""
        return bool(self._running)

    def show(
        self,
        terrain: HeightMap,
        poses: WorldPoses,
        weather: Weather,
        imagery: Imagery | None = None,
    ) -> None:
        """Take over what the window shows now; the arrays are not copied and must stay as is."""
        now = time.monotonic() - self._start
        with self._changed:
            self._scene = WindowScene(terrain, poses, now, None, weather, imagery)
            self._changed.notify()

    def request(self, datagram: bytes, source: str) -> None:
        """Start or change a sensor that a datagram from an IPv4 address requests.

        What cannot be done becomes a message.
        """
        try:
            sensor = read_request(datagram)
            check(sensor)
            self._start_or_change(sensor, self._destination(sensor, source))
        except RflyError as error:
            self._messages.append(str(error))

    def clear_sensors(self, seq_id: int | None = None) -> None:
        """Remove a sensor, or all; one that does not run is no error."""
        with self._changed:
            numbers = list(self._running) if seq_id is None else [seq_id]
            for number in numbers:
                running = self._running.pop(number, None)
                if running is not None:
                    running.socket.close()

    def take_messages(self) -> list[str]:
        """Return what happened since the last call, for the window's log."""
        return [self._messages.popleft() for _ in range(len(self._messages))]

    def close(self) -> None:
        """Stop sending, after the frame that is being made."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()
        self.clear_sensors()

    # --- requests

    def _destination(self, sensor: VisionSensor, source: str) -> str:
        """Return the address to which the frames go; ConfigError if it is not allowed."""
        address = ".".join(map(str, sensor.address))
        if address in _REQUESTER:
            address = source
        for each in (source, address):
            if each not in self._allowed and not _is_own(each):
                raise ConfigError(
                    f"sensor {sensor.seq_id}: {each} is another machine; "
                    f"rfly view --sensors-to {each} allows it"
                )
        return address

    def _start_or_change(self, sensor: VisionSensor, address: str) -> None:
        with self._changed:
            before = self._running.get(sensor.seq_id)
            if before is None and len(self._running) >= MAX_SENSORS:
                raise ConfigError(
                    f"sensor {sensor.seq_id}: {MAX_SENSORS} sensors run already, the most"
                )
            running = _Running(sensor, address)
            if before is not None:
                running.due = before.due
                running.number = before.number
                running.scene = before.scene
                running.missing = before.missing
                before.socket.close()
            self._running[sensor.seq_id] = running
            self._changed.notify()

    # --- the thread

    def _run(self) -> bool:
        """Make the frame that is due, or wait for one; return False at the end."""
        with self._changed:
            if self._closed:
                return False
            scene = self._scene
            waiting = [each for each in self._running.values() if each.scene is not scene]
            running = min(waiting, key=lambda each: each.due, default=None)
            early = None if running is None else running.due - time.monotonic()
            if running is None or scene is None or (early is not None and early > 0.0):
                self._changed.wait(early)
                return True
            sensors = {number: each.sensor for number, each in self._running.items()}

        running.scene = scene
        self._make_frame(running, self._with_objects(scene), sensors)
        running.due = max(running.due + running.period, time.monotonic())
        return True

    def _make_frame(
        self, running: _Running, scene: WindowScene, sensors: dict[int, VisionSensor]
    ) -> None:
        """Render and send one frame; a sensor that fails is removed, with a message."""
        sensor = running.sensor
        try:
            pose = scene.sensor_pose(sensor, sensors)
        except ConfigError as error:
            self._tell_missing(running, str(error))
            return

        running.missing = ""
        try:
            payload = encode(sensor, pose, measure(sensor, pose, scene, running.number))
        except (RflyError, ValueError, ArithmeticError, MemoryError) as error:
            self._messages.append(f"sensor {sensor.seq_id} is removed: {error}")
            self._remove(running)
            return
        self._send(running, encode_fragments(payload, scene.time, running.number & 0x7FFFFFFF))
        running.number += 1

    def _with_objects(self, scene: WindowScene) -> WindowScene:
        """Return a scene with the world's objects, which are built once for a ground."""
        if self._objects is None or self._objects[0] is not scene.terrain:
            world = self._world.on(scene.terrain)
            self._objects = (scene.terrain, world_bodies(world) if world.objects else None)
        return dataclasses.replace(scene, objects=self._objects[1])

    def _tell_missing(self, running: _Running, reason: str) -> None:
        if running.missing != reason:
            running.missing = reason
            self._messages.append(reason)

    def _send(self, running: _Running, datagrams: list[bytes]) -> None:
        try:
            for number, datagram in enumerate(datagrams, 1):
                running.socket.send(datagram)
                if number % BURST == 0:
                    time.sleep(BURST_GAP_S)
            self.frames += 1
        except ConnectionRefusedError:
            self._count_refusal(running)
        except OSError as error:  # removed meanwhile, or no route
            if running is self._running.get(running.sensor.seq_id):
                self._tell_missing(running, f"sensor {running.sensor.seq_id}: {error.strerror}")

    def _count_refusal(self, running: _Running) -> None:
        """Remove a sensor to which nobody has listened for long."""
        now = time.monotonic()
        if now - running.refused_last > REFUSAL_GAP_S:
            running.refused_since = now
        running.refused_last = now
        if now - running.refused_since > UNHEARD_S:
            self._messages.append(
                f"sensor {running.sensor.seq_id} is removed: nothing receives at "
                f"{running.address}:{running.sensor.port}"
            )
            self._remove(running)

    def _remove(self, running: _Running) -> None:
        with self._changed:
            if self._running.get(running.sensor.seq_id) is running:
                del self._running[running.sensor.seq_id]
                running.socket.close()


def _is_own(address: str) -> bool:
    """Return whether an IPv4 address is this machine's."""
    ip = ipaddress.IPv4Address(address)
    if ip.is_loopback:
        return True
    if ip.is_multicast or ip.is_unspecified:
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tried:
        try:
            tried.bind((address, 0))
        except OSError:
            return False
    return True
