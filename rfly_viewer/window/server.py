# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Viewer server: one loop that drains datagrams and redraws at most RATE times a second."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from rfly_collision.shapes import vehicle_meshes as models
from rfly_collision.shapes.vehicle_descriptions import NONE, VehicleDescriptions
from rfly_common.arrays import Triple
from rfly_common.config.vehicle_models import model_text
from rfly_common.errors import CommandError, RflyError
from rfly_common.startup import stop_by_signal
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.height_map.terrain import RETRY_S, RETRY_SHARE, Terrain, is_central
from rfly_terrain.imagery.imagery import Imagery
from rfly_terrain.map_files.search import known_maps
from rfly_terrain.world.weather import Weather
from rfly_terrain.world.world import World
from rfly_ue_bridge.codec.addresses import FEEDBACK_PORT, WINDOW_PORT
from rfly_viewer.drawing.label_layer import LabelLayers
from rfly_viewer.drawing.screen import Screen, drawn_enlarged
from rfly_viewer.drawing.sight import PlaceFinder, Sight, sight_from
from rfly_viewer.drawing.sky import Sky
from rfly_viewer.drawing.terrain_layer import TerrainLayer
from rfly_viewer.drawing.trail_layer import MAX_THICKNESS_PX, TrailLayer
from rfly_viewer.drawing.vehicle_layer import VehicleLayer
from rfly_viewer.drawing.world_meshes import WorldLayer
from rfly_viewer.scene import scene_commands as commands
from rfly_viewer.scene.console import KEYS
from rfly_viewer.scene.picking import Click, pick
from rfly_viewer.scene.scan import scan_terrain
from rfly_viewer.scene.scene_state import SceneState, near_ground
from rfly_viewer.scene.state_batches import StateBatch, counted, read_batches
from rfly_viewer.scene.vehicle_table import WorldPoses
from rfly_viewer.window.cameras import Cameras
from rfly_viewer.window.connections import open_server
from rfly_viewer.window.panel import Panel
from rfly_viewer.window.readouts import Readouts
from rfly_viewer.wire.feedback_sender import FeedbackSender
from rfly_viewer.wire.listener import Feed, Listener, Playback, SensorRequest


class SensorAnswering(Protocol):
    """Answers to requests. No call waits or raises."""

    @property
    def is_running(self) -> bool:
        """Return whether there are sensors, which want the scene often."""

    def show(
        self,
        terrain: HeightMap,
        poses: WorldPoses,
        weather: Weather,
        imagery: Imagery | None = None,
    ) -> None:
        """Take over what the window shows now; the arrays stay as they are."""

    def request(self, datagram: bytes, source: str) -> None:
        """Start or change the sensor that a datagram from an IPv4 address requests."""

    def clear_sensors(self, seq_id: int | None = None) -> None:
        """Remove a sensor, or all."""

    def take_messages(self) -> list[str]:
        """Return lines for the window's log."""

    def close(self) -> None:
        """Stop; the thread ends after its frame."""


CLOSE_S = 5.0
"""Longest time for which a window that closes waits for the ground that is being made, s."""
RATE_HZ = 30.0
"""Most pictures a second."""
PANEL_EVERY_S = 0.5
"""Time between two updates of the panel, s."""
DOUBLE_CLICK_S = 0.6
"""Longest time between the clicks of a double click, s."""
DOUBLE_CLICK_APART = 0.01
"""Longest distance between them, relative to the picture's width or height."""
FIRST_TARGET_ID = 1001
"""Smallest id of a target that is put down by a click."""
FIRST_OBJECT_ID = 1000
"""Smallest id of a vehicle that key O puts down."""
MAX_CLICKS = 8
"""Clicks that are taken for one picture, the latest."""
MAX_NOTICES = 4
"""Texts of one picture that are shown in the browsers, the first."""
NEAR_M = 30.0
"""Distance up to which a click on the ground counts as the ground next to an object, m."""


@dataclass(frozen=True)
class Settings:
    """Options of `rfly view`."""

    map: str = ""
    terrain: Terrain | None = None
    """Ground that is shown at first in place of `map`."""
    search_path: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    http_port: int = 8080
    udp_port: int = WINDOW_PORT
    lan_interface: str = ""
    feedback_host: str = "127.0.0.1"
    feedback_port: int = FEEDBACK_PORT
    scan_folder: Path | None = None
    max_triangles: int = 400_000
    shadows: bool = True
    follow: int | None = None
    """Id of a vehicle that the cameras follow once it appears, or ALL_VEHICLES."""
    enlarge: int = 1
    """First magnification of vehicles, 1 to MAX_ENLARGED."""
    descriptions: VehicleDescriptions = NONE
    """Descriptions of vehicle types in vehicle XML."""
    world: World = field(default_factory=World)
    """Objects that stand on the map."""
    sight_from: tuple[float, float] | None = None
    """Place whose sight the ground shows at first, x east and y north, m."""
    imagery: Path | None = None
    """Picture of the ground, for the maps that it shows a part of."""
    sensors: Callable[[World], SensorAnswering] | None = None
    """Maker of the answers to requests for sensors, called at the first one; None: no answers."""


class Viewer:
    """The whole window. `run` draws until `stop`; `address` is where a browser finds it."""

    def __init__(self, settings: Settings, source: Playback | Feed | None = None) -> None:
        """Open the window. `source`: shown in place of what arrives by UDP."""
        self._settings = settings
        self._stopped = threading.Event()
        self.state = SceneState(settings.search_path, descriptions=settings.descriptions)
        if settings.terrain is not None:
            self.state.show_ground(settings.terrain, settings.terrain.name)
        elif settings.map:
            self.state.change_map(settings.map)

        self.feedback = FeedbackSender(settings.feedback_host, settings.feedback_port)
        self.listener = source or Listener(settings.host, settings.udp_port, settings.lan_interface)
        self.server, self.connections = open_server(settings.host, settings.http_port)

        self._imagery: Imagery | None = None
        self._finder = PlaceFinder(sight_from, "rfly view: sight")
        self._near: PlaceFinder[Terrain, HeightMap | str]
        self._near = PlaceFinder(near_ground, "rfly view: near ground")
        self._near_place: tuple[float, float] | None = None
        """Place about which the ground was read last, x east and y north, m."""
        self._near_problem = ""
        """Reason why it could not be read; empty if it could."""
        self._near_again_s = math.inf
        """Time at which it is read again for the same place."""
        self._sight: Sight | None = None
        self._sight_place = settings.sight_from
        self._sight_asked: tuple[HeightMap, tuple[float, float]] | None = None
        self._sensors: SensorAnswering | None = None
        self._weather = Weather()

        self.counters: Counter[str] = Counter()
        self._clicks: deque[tuple[int, float, Any]] = deque(maxlen=MAX_CLICKS)
        self._last_click: tuple[int, float, tuple[float, float]] | None = None
        self._ground_click: Click | None = None

        self._sky = Sky(self.server, settings.shadows)
        self._terrain = TerrainLayer(self.server, settings.max_triangles, lit=settings.shadows)
        self._world = WorldLayer(self.server, settings.world)
        self._vehicles = VehicleLayer(self.server)
        self._labels = LabelLayers(self.server)
        self._trails = TrailLayer(self.server)

        self.panel = Panel(
            self.server,
            self._run_command,
            self._show_all,
            self._remove_all,
            settings.follow,
            settings.enlarge,
        )
        self.panel.show("sight", int(settings.sight_from is not None))
        self.cameras = Cameras(self.server)
        self._readouts = Readouts(self.server)
        self._poses = self.state.vehicles.world(self.state.terrain)

        self._rate_hz = RATE_HZ
        self._frames = 0
        self._notices_left = MAX_NOTICES
        self._last_frame_s = time.monotonic()
        self._due_s = 0.0
        """Time of the next picture, on the steady clock."""
        self._panel_due_s = 0.0
        self._rates_from = (time.monotonic(), 0, 0)
        self._rates = (0.0, 0.0)

        self._map_shown()
        self.state.take_events()
        self.server.scene.on_click()(self._on_click)
        self.server.on_client_connect(lambda client: self.listener.arrived.set())

    @property
    def address(self) -> str:
        """Address for a browser."""
        host = "127.0.0.1" if self._settings.host == "0.0.0.0" else self._settings.host
        return f"http://{host}:{self.server.get_port()}"

    @property
    def is_settled(self) -> bool:
        """True if there are browsers, and all of them show the fine ground."""
        return self._terrain.is_settled

    def stop(self) -> None:
        """Make `run` return."""
        self._stopped.set()
        self.listener.arrived.set()

    def run(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Draw until `stop`, or `stopped`.

        The first datagram after a pause is drawn at once, then RATE_HZ is kept.
        """
        try:
            while not stopped() and self.turn():
                pass
        finally:
            self.close()

    def turn(self) -> bool:
        """Wait for datagrams, or the next picture of what turns, and draw; False after `stop`."""
        motors_turn = bool((self._poses.motor_speed_rpm != 0).any())
        wheels_turn = bool((self._poses.wheel_speed_rpm != 0).any())
        measured = self._sensors is not None and self._sensors.is_running
        often = motors_turn or wheels_turn or measured
        self.listener.arrived.wait(1 / self._rate_hz if often else 0.1)

        self._stopped.wait(max(0.0, self._due_s - time.monotonic()))
        if self._stopped.is_set():
            return False
        self._due_s = time.monotonic() + 1 / self._rate_hz
        self.draw(time.monotonic())
        return True

    def close(self) -> None:
        """Close sockets and page."""
        self.listener.close()
        self.feedback.close()
        if self._sensors is not None:
            self._sensors.close()
        self._terrain.close(CLOSE_S)
        self.server.stop()

    def draw(self, now_s: float) -> None:
        """Take the datagrams, do what they say, and send the browsers the changes."""
        state = self.state
        arrived = self.listener.take()
        self._notices_left = MAX_NOTICES
        self._take_datagrams(arrived, now_s)
        state.labels.expire(now_s)

        self.panel.run_actions()
        self._do_events(now_s)

        self._move_window(now_s)
        self._poses = poses = state.vehicles.world(state.terrain)
        self._take_clicks()

        # draw
        drawn = self._world.without_its_boxes(poses, state.vehicles["vehicle_type"])
        if self._sensors is not None:
            self._sensors.show(state.terrain, drawn, self._weather, self._imagery)
            for line in self._sensors.take_messages():
                state.add_log_line(line)
        elapsed = now_s - self._last_frame_s
        self._last_frame_s = now_s
        screens = [Screen.of(client.camera) for client in self.server.get_clients().values()]
        enlarge = drawn_enlarged(drawn, screens, self.panel.enlarge)
        self._show_sight()
        self._terrain.update(now_s, state.terrain)
        problem = self._terrain.take_problem()
        if problem:
            state.add_log_line(problem)
        with self.server.atomic():
            self._vehicles.show(drawn, enlarge, elapsed)
            below = state.terrain if self.panel.shows("ground_trails") else None
            self._trails.show(drawn, self.panel.shows("trails"), below, now_s)
        if self.panel.shows("texts"):
            self._labels.show(drawn, state.labels, self.panel.shows("ids"), enlarge)
        else:
            self._labels.clear()

        followed = self.panel.followed
        self.cameras.update(poses, followed, state.terrain)
        self.cameras.clip(poses, state.terrain)
        described = followed if self.panel.shows("data") else None
        legend = "" if self._sight is None else self._sight.legend()
        self._readouts.update(poses, described, state.terrain, now_s, legend)
        self.server.flush()

        # report
        self.feedback.report(
            state.vehicles,
            poses,
            state.terrain,
            data=state.reports_vehicles,
            crashes=state.collision_mode,
            now_s=now_s,
        )

        self._frames += bool(arrived)
        if now_s >= self._panel_due_s:
            self._panel_due_s = now_s + PANEL_EVERY_S
            self._show_panel(now_s)

    def _take_datagrams(self, arrived: list[bytes], now_s: float) -> None:
        """Do what datagrams say, in their order: commands may clear sensors before new requests."""
        make_sensors = self._settings.sensors
        if make_sensors is None:
            for update in read_batches(arrived, self.counters):
                self.state.apply(update, now_s)
            return

        for is_request, group in itertools.groupby(arrived, _is_sensor_request):
            if not is_request:
                for update in read_batches(list(group), self.counters):
                    self.state.apply(update, now_s)
                continue
            self._do_events(now_s)
            if self._sensors is None:
                self._sensors = make_sensors(self._settings.world)
            for request in group:
                assert isinstance(request, SensorRequest)
                self.counters["sensor requests"] += 1
                self._sensors.request(request, request.source)

    def _do_events(self, now_s: float) -> None:
        for event in self.state.take_events():
            self._do(event, now_s)

    def _do(self, event: Any, now_s: float) -> None:
        """Do what a command asks of the window; errors go to the log."""
        try:
            match event:
                case commands.ChangeMap():
                    self._clear_sensors(None)  # as RflySim3D does
                    self._map_shown()
                case commands.DeleteVehicles(vehicle_ids):
                    self._trails.forget(vehicle_ids or ())
                case commands.ClearSensors(seq_id):
                    self._clear_sensors(seq_id)
                case commands.MoveCamera():
                    self.cameras.move(event, self.state.terrain)
                case commands.CameraFov(horizontal):
                    self.cameras.set_fov(horizontal)

                case commands.ViewKey():
                    self._press(event)
                case commands.ReadCommand("RflySetCopterLine", (vehicle_id, rgb)):
                    self._trails.set_colour(vehicle_id, rgb)
                case commands.ReadCommand("t.MaxFPS", (frames_per_s,)):
                    self._rate_hz = min(frames_per_s or RATE_HZ, RATE_HZ)
                case commands.ReadCommand("RflySuiteWeather", (weather,)):
                    self._weather = weather
                    self._sky.show(weather)
                    self._terrain.dim(self._sky.daylight)
                case commands.ReadCommand("RflyShowText" | "RflyShowTextTime", (text, seconds)):
                    self._notify(text, "", seconds)
                case commands.RequestObject():
                    self.feedback.answer(event, self._poses, self.cameras.current(), now_s)
                case commands.ScanTerrain():
                    path = scan_terrain(
                        event, self.state.whole, self.state.map_name, self._settings.scan_folder
                    )
                    self.state.add_log_line(f"wrote {path}.png and .txt")
        except (CommandError, RflyError, OSError, ValueError, ArithmeticError) as error:
            self.state.add_log_line(str(error))

    def _clear_sensors(self, seq_id: int | None) -> None:
        if self._sensors is not None:
            self._sensors.clear_sensors(seq_id)

    def _press(self, key: commands.ViewKey) -> None:
        """Do what a key asks of the window."""
        match key:
            case commands.ViewKey("B", vehicle_id):
                self.panel.follow(vehicle_id)
            case commands.ViewKey("V", camera):
                self.cameras.mount(camera)
            case commands.ViewKey("N", number):
                self._take_birds_view(number)
            case commands.ViewKey("S" | "H" | "D" as name, number):
                self.panel.show({"S": "ids", "H": "texts", "D": "data"}[name], number)
            case commands.ViewKey("T", number):
                self.panel.show("trails", number)
                if number is not None and number > 0:
                    self._trails.thickness = min(float(number), MAX_THICKNESS_PX)
            case commands.ViewKey("M"):
                self.state.change_map(next_map(self.state.map_name, known_maps()))
            case commands.ViewKey("O", int(vehicle_type)):
                self._place_at_click(vehicle_type)
            case commands.ViewKey("F1"):
                self._notify(
                    "Keys", "; ".join(f"{name}: {does}" for name, does in KEYS.items()), 30.0
                )

    def _take_birds_view(self, number: int | None) -> None:
        """Look at a vehicle or the scene from outside, as key N of that number asks."""
        self.cameras.mount(0)
        match number:
            case 0 | 1:
                if self.panel.followed is None:
                    self.panel.follow(None)
                self.cameras.stand(number == 1)
            case 2 | 3:
                self.panel.follow_nobody()
                self.cameras.look(math.pi * (number == 3))
            case _:
                self.panel.follow_nobody()
                self._show_all()

    def _map_shown(self) -> None:
        self._imagery = None
        if self._settings.imagery is not None and self.state.terrain_known:
            try:
                self._imagery = Imagery.open(self._settings.imagery, self.state.whole)
            except RflyError as error:
                self.state.add_log_line(f"the ground is shown without a picture: {error}")
        self._sight = None
        self._near.ask(self.state.whole, None)
        self._near_place = None
        self._terrain.show(self.state.whole, self._imagery)
        self._world.show(self.state.terrain)
        self._trails.clear()
        self.cameras.show_map(self.state.terrain)

        if self.state.map_name and not self.state.terrain_known:
            self._notify(
                f"Map {self.state.map_name} was not found", "Flat ground is shown instead.", 8.0
            )

    def _move_window(self, now_s: float) -> None:
        """Of a map in tiles, read the ground about the vehicle or camera that nears its edge.

        That is the followed vehicle, else the first one, else the first browser's camera.
        """
        state = self.state
        changed, near = self._near.take()
        if changed and isinstance(near, str):
            if near != self._near_problem:
                state.add_log_line(near)
            self._near_problem = near
            self._near_again_s = now_s + RETRY_S
        elif changed and isinstance(near, HeightMap):
            state.terrain = near
            self._near_problem = ""
            self._world.show(near)

        followed = self.panel.followed
        row = None if followed is None else self._poses.row(followed)
        cameras = [client.camera for client in self.server.get_clients().values()]
        if len(self._poses):
            north, east = self._poses.position_ned[row or 0, :2].tolist()
            place = (east, north)
        elif cameras:
            place = (float(cameras[0].position[0]), float(cameras[0].position[1]))
        else:
            return
        # a slow server would never end a search that the next one replaces
        if is_central(state.terrain, state.whole, *place) or self._near.is_at_work:
            return
        x_min, x_max, _, _ = state.terrain.bounds
        last = self._near_place
        has_moved = last is None or math.dist(last, place) > RETRY_SHARE * (x_max - x_min)
        if has_moved or now_s >= self._near_again_s:
            self._near_place = place
            self._near_again_s = math.inf
            self._near.ask(state.whole, place)

    def _show_sight(self) -> None:
        """Tint the ground by what a place has in sight, when that is found."""
        terrain = self.state.terrain
        place = self._sight_place if self.panel.shows("sight") else None
        asked = None if place is None else (terrain, place)
        if asked != self._sight_asked:
            self._sight_asked = asked
            self._finder.ask(terrain, place)
        changed, sight = self._finder.take()
        if changed:
            self._sight = sight
            shown = self._imagery if sight is None else sight.over(self._imagery)
            self._terrain.show(self.state.whole, shown)

    def _notify(self, title: str, body: str, seconds: float) -> None:
        self._notices_left -= 1
        if self._notices_left < 0:
            return
        for client in self.server.get_clients().values():
            client.add_notification(title, body, auto_close_seconds=seconds or None)

    def _run_command(self, text: str) -> None:
        self.state.run_command(text, time.monotonic())

    def _show_all(self) -> None:
        self.cameras.show_all(self._poses, self.state.terrain)

    def _remove_all(self) -> None:
        self.state.vehicles.clear()
        self._trails.clear()

    def _on_click(self, event: Any) -> None:
        self._clicks.append((event.client_id, time.monotonic(), event))
        self.listener.arrived.set()

    def _take_clicks(self) -> None:
        for _ in range(len(self._clicks)):
            client, at_s, event = self._clicks.popleft()
            before = self._last_click
            self._last_click = (client, at_s, event.screen_pos)

            if self.panel.take_place_click():
                self._place_target(event)
            elif before is not None and before[0] == client and at_s - before[1] < DOUBLE_CLICK_S:
                apart = np.abs(np.subtract(before[2], event.screen_pos)).max()
                if apart < DOUBLE_CLICK_APART:
                    self._last_click = None
                    self._double_click(event)

    def _place_target(self, event: Any) -> None:
        click = pick(self.state.terrain, self._poses, event.ray_origin, event.ray_direction)
        if click is None:
            return
        self._put_down(models.TARGET_TYPE, click.point, FIRST_TARGET_ID)

    def _place_at_click(self, vehicle_type: int) -> None:
        """Put a vehicle of a type where the mouse clicked twice, as key O does."""
        if self._ground_click is None:
            raise CommandError("key O: double click on the ground first")
        self._put_down(vehicle_type, self._ground_click.point, FIRST_OBJECT_ID)

    def _put_down(self, vehicle_type: int, point: Triple, first_id: int) -> None:
        ids = self.state.vehicles.id
        target = int(max(first_id, ids.max() + 1 if len(ids) else 0))
        x, y, z = point

        batch = StateBatch(
            id=np.array([target]),
            vehicle_type=np.array([vehicle_type]),
            position_ned=np.array([point]),
            euler=np.zeros((1, 3)),
            velocity_ned=np.zeros((1, 3)),
            scale=np.ones((1, 3)),
            motor_speed_rpm=np.zeros(1),
            wheel_speed_rpm=np.zeros(1),
            on_ground=np.array([True]),
        )

        self.state.vehicles.update(batch, time.monotonic())
        self._poses = self.state.vehicles.world(self.state.terrain)
        self.state.add_log_line(
            f"{model_text(vehicle_type)} {target} was put at {x:.3f} {y:.3f} {z:.3f} (NED, m)"
        )

    def _double_click(self, event: Any) -> None:
        click = pick(self.state.terrain, self._poses, event.ray_origin, event.ray_direction)
        if click is None:
            return

        if click.object_position is None:
            self._ground_click = click
            self._sight_place = click.point[1], click.point[0]

        lines = click_lines(click, self._ground_click, self.state.terrain.altitude_ned)
        self.panel.show_click(lines)
        for line in lines:
            self.state.add_log_line(line)

    def _show_panel(self, now_s: float) -> None:
        understood, dropped = counted(self.counters)
        dropped += self.listener.overflow
        dropped += self.state.vehicles.refused
        dropped += self.connections.counters["not_understood"]

        # rates over a second or more
        since_s, packets, frames = self._rates_from
        elapsed_s = now_s - since_s
        if elapsed_s >= 1.0:
            self._rates = (
                (understood - packets) / elapsed_s,
                (self._frames - frames) / elapsed_s,
            )
            self._rates_from = (now_s, understood, self._frames)
        packets_per_s, frames_per_s = self._rates

        x_min, x_max, y_min, y_max = self.state.whole.bounds
        name = self.state.map_name or "flat ground"
        if self.state.map_name and not self.state.terrain_known:
            name = f"{name}: not found, flat ground"

        vehicles = len(self._poses)
        self.panel.show_status(
            [
                f"{name}, {x_max - x_min:.0f} m east x {y_max - y_min:.0f} m north",
                f"{vehicles} vehicle{'' if vehicles == 1 else 's'}; {self.listener.name}",
                f"{packets_per_s:.0f} packets/s, {frames_per_s:.0f} pictures/s",
                f"{understood:,} packets, {dropped:,} not understood",
            ]
        )

        self.panel.show_vehicles(self.state.vehicles, self._poses)
        self.panel.show_log(self.state.log)


def _is_sensor_request(datagram: bytes) -> bool:
    return isinstance(datagram, SensorRequest)


def next_map(shown: str, names: Sequence[str]) -> str:
    """Return the map that key M shows after `shown`. Raises CommandError if there is none."""
    if not names:
        raise CommandError("key M: no map is on the search path")
    following = names.index(shown) + 1 if shown in names else 0
    return names[following % len(names)]


def click_lines(
    click: Click, ground_click: Click | None, altitude_ned: Callable[[float, float], float]
) -> list[str]:
    """Return what a double click shows: click point and object position.

    On an object they are followed by the offset for `rfly objects fit`.
    """
    x, y, z = click.point
    lines = [f"click point: {x:.3f} {y:.3f} {z:.3f}"]
    if click.object_position is None:
        return [*lines, "the ground; now double click on an object"]
    ox, oy, oz = click.object_position
    lines.append(f"object pos: {ox:.3f} {oy:.3f} {oz:.3f} (vehicle {click.vehicle_id})")

    ground = (ox, oy, altitude_ned(ox, oy))
    if ground_click is not None and math.dist(ground_click.point[:2], (ox, oy)) < NEAR_M:
        ground = ground_click.point
    gx, gy, gz = ground

    lines.append(f"offset above the ground: {gz - oz:.3f} m")
    lines.append(
        f"rfly objects fit --click {gx:.3f} {gy:.3f} {gz:.3f} --object {ox:.3f} {oy:.3f} {oz:.3f}"
    )
    return lines


def view(
    settings: Settings,
    print_line: Callable[[str], None],
    open_browser: bool,
    playback: Playback | None = None,
) -> None:
    """Run the viewer until Ctrl-C, SIGTERM or SIGHUP.

    `playback` begins when a browser shows the page.
    """
    viewer = Viewer(settings, playback)
    with stop_by_signal() as stopped:
        # not by `viewer.stop`: it takes locks, which the interrupted loop may hold
        print_line(f"rfly view: {viewer.address} shows {viewer.listener.name}; Ctrl-C ends it")
        for line in viewer.state.log:
            print_line(f"rfly view: {line}")
        if open_browser:
            import webbrowser

            webbrowser.open(viewer.address)
        while playback is not None and not (stopped() or viewer.server.get_clients()):
            time.sleep(0.05)
        viewer.run(stopped)
