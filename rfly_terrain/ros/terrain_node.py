# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""terrain_node: a terrain as a latched cloud and map, altitudes as services.

A thin shell around Terrain. Of a map in tiles, topics show a window, which may follow a vehicle.
Tiles that are not in memory are read in threads: queries wait for them, the node does not.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from geometry_msgs.msg import Vector3
from rclpy.node import Node
from rfly_suite.msg import TerrainMap
from rfly_suite.srv import GetTerrainAltitude, GetTerrainAltitudes, LoadTerrain
from sensor_msgs.msg import PointCloud2
from tf2_msgs.msg import TFMessage

from rfly_common.config.checks import finite_array
from rfly_common.diagnostic_reasons import Notice, Reason
from rfly_common.errors import ConfigError, FrameError, RflyError, TerrainError, WorkError
from rfly_common.frames import (
    QUAT_ENU_NED_XYZW,
    ned_to_enu,
    quat_conjugate,
    quat_rotate,
    up_to_down,
)
from rfly_common.geodesy import DEFAULT_GEO_ORIGIN, GeoPoint, geo_point
from rfly_common.ros.diagnostics import ERROR, OK, WARN, Diagnostics
from rfly_common.ros.endpoints import publisher, waiting_service
from rfly_common.ros.flat_arrays import flat
from rfly_common.ros.frame_lookup import Frames, transform_to_msg
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import LATCHED, TF_STATIC_OUT
from rfly_common.ros.run_loop import in_thread
from rfly_common.transform_buffer import FrameToWorld
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.height_map.places import are_exchanged, position_of
from rfly_terrain.height_map.terrain import (
    RETRY_S,
    RETRY_SHARE,
    Terrain,
    TerrainQuery,
    is_central,
)
from rfly_terrain.ros.marker_topics import TerrainMarkers
from rfly_terrain.ros.node_parameters import TerrainParameters
from rfly_terrain.ros.terrain_msgs import cloud_to_msg, height_map_to_msg
from rfly_terrain.ros.window_topics import FollowedPlace
from rfly_terrain.tiles.open_terrain import open_asked_terrain, open_terrain
from rfly_terrain.tiles.read_ahead import ReadAhead
from rfly_terrain.warm_up import warm_up

if TYPE_CHECKING:
    from rfly_common.ros.lifecycle import Lifecycle
    from rfly_terrain.ros.occupancy_topics import TerrainOccupancy

GEODETIC_FRAME = "wgs84"
"""frame_id of queries whose x and y are latitude and longitude, degrees."""
MAX_POINTS_PER_CALL = 10_000_000
MOST_WAITING = 100
"""Queries that wait for tiles at the same time, at most."""
SLOW_S = 1.0
"""Time that a query waits for tiles before the diagnostics tell it, s."""


class _LoadedMap(NamedTuple):
    """A loaded map, or the reason why there is none."""

    terrain: Terrain | None
    window: HeightMap | None = None
    """The part that topics show."""
    messages: tuple[TerrainMap, PointCloud2] | None = None
    """Messages without stamps."""
    error: str = ""


class TerrainNode(Node):
    """Node of the terrain: publishes the map, answers altitude queries, loads maps.

    The topics are `outTerrainPoint`, `terrain_map` and `terrain_occupancy`.
    """

    def __init__(self) -> None:
        super().__init__("terrain_node")
        params = declare_parameters(self, TerrainParameters)
        self._params = params
        self._frame_id = params.frame_id
        self._geo_origin = (
            geo_point(params.geo_origin, "parameter geo_origin") if params.geo_origin else None
        )

        self._frames = Frames(self)
        worlds = [*self._frames.enu_frames, *self._frames.ned_frames]
        if self._frames.axes(self._frame_id) is None:
            self.get_logger().error(
                f"parameter frame_id: {self._frame_id!r} is no world frame ({', '.join(worlds)}); "
                f"using {worlds[0]!r}"
            )
            self._frame_id = worlds[0]

        self._terrain: Terrain | None = None
        self._window: HeightMap | None = None
        self._unread_place: tuple[float, float] | None = None
        """Place of a window that could not be read."""
        self._unread_problem = ""
        """Reason why the window stays behind; empty if it does not."""
        self._unread_until_s = 0.0
        """Time at which it is read again, monotonic."""
        self._moving = False
        self._waiting: dict[object, float] = {}
        """Times at which queries began to wait for tiles, monotonic, s."""
        self._ahead = ReadAhead(self._start_thread, time.monotonic)
        self._occupancy: TerrainOccupancy | None = None
        self._load_error = ""
        self._configured: _LoadedMap | None = None
        """The map that was loaded last, which a lifecycle's activation serves."""
        self._loading = threading.Lock()
        self._lifecycle: Lifecycle | None = None

        self._cloud = publisher(self, PointCloud2, "outTerrainPoint", LATCHED)
        self._map = publisher(self, TerrainMap, "terrain_map", LATCHED)
        self._markers = TerrainMarkers(self, params.marker_max_triangles, params.imagery)
        self._diagnostics = Diagnostics(self, "terrain", params.map, self._update_diagnostics)

        self._place = FollowedPlace(self, self._frames, self._diagnostics, self._on_place)

        # the map first, all else after it; kernels before the first question
        if params.lifecycle:
            self._lifecycle = self._make_lifecycle()
        else:
            self._use_loaded(self._load(params.map))
        if params.publish_tf:
            self._publish_static_transform()
        warm_up()
        self._occupancy = self._make_occupancy()

        waiting_service(self, GetTerrainAltitude, "get_terrain_altitude", self._get_altitude)
        waiting_service(self, GetTerrainAltitudes, "get_terrain_altitudes", self._get_altitudes)
        waiting_service(self, LoadTerrain, "load_terrain", self._load_terrain)

    def _make_lifecycle(self) -> Lifecycle:
        """Let a manager bring the node up; imports that no other node needs."""
        from rfly_common.ros.lifecycle import Lifecycle

        return Lifecycle(
            self,
            configure=self._configure,
            activate=self._activate,
            deactivate=self._deactivate,
            cleanup=self._cleanup,
        )

    def _configure(self) -> None:
        """Load the parameter's map. Raises ConfigError for one that cannot be loaded."""
        loaded = self._load(self._params.map)
        if loaded.error:
            raise ConfigError(loaded.error)
        self._configured = loaded

    def _activate(self) -> None:
        """Publish and serve the map that was loaded last."""
        assert self._configured is not None
        self._use_loaded(self._configured)

    def _deactivate(self) -> None:
        """Stop serving; the map stays loaded."""
        self._terrain = None
        self._window = None
        self._markers.forget()
        if self._occupancy is not None:
            self._occupancy.forget()

    def _cleanup(self) -> None:
        """Forget the map."""
        self._configured = None

    def _is_inactive(self) -> bool:
        """Return whether a manager has not activated the node."""
        return self._lifecycle is not None and self._terrain is None

    def _reason_not_to_serve(self) -> str:
        """Return why there is no map to serve; "" if there is one."""
        if self._terrain is not None:
            return ""
        if self._lifecycle is not None:
            return f"the lifecycle's state is {self._lifecycle.state}, expected active"
        return f"no map is loaded: {self._load_error}; call load_terrain"

    def _load(self, name: str, requested: bool = False) -> _LoadedMap:
        """Return the map or its error.

        Nothing of the node changes, so that another thread may call this. `requested`: a peer has
        named the map and must not learn the content of any file.
        """
        params = self._params
        try:
            load = open_asked_terrain if requested else open_terrain
            terrain = load(name, tuple(params.map_search_path), params.tile_memory_mb)
            return self._shown(terrain, *self._place.place)
        except (RflyError, OSError) as error:
            return _LoadedMap(None, error=" ".join(str(error).split()))
        except MemoryError:
            return _LoadedMap(None, error=f"map {name!r}: not enough memory to load it")

    def _shown(self, terrain: Terrain, x: float, y: float) -> _LoadedMap:
        """Return a map with what topics show of it about a place.

        Messages of up to 100 MB are made in the loading thread, not in the executor's.
        """
        window = terrain.window(x, y, self._place.params.window_samples)
        stride = _stride(window, self._params.cloud_max_points)
        ned = self._frames.axes(self._frame_id) == "ned"
        points = window.point_cloud_ned(stride) if ned else window.point_cloud(stride)
        origin, _ = self._choose_geo_origin(terrain)

        # a part of a map is known by no file, so that its heights are always sent
        is_whole = (window.rows, window.columns) == (terrain.rows, terrain.columns)
        most = self._params.terrain_map_max_cells if is_whole else window.heights.size
        map_message = height_map_to_msg(window, origin, 0, most)
        cloud_message = cloud_to_msg(points, self._frame_id, 0)
        return _LoadedMap(terrain, window, (map_message, cloud_message))

    def _use_loaded(self, loaded: _LoadedMap) -> None:
        """Serve and publish a loaded map; after a failed load the present map stays."""
        terrain = loaded.terrain
        self._load_error = loaded.error
        if terrain is None or loaded.window is None:
            self.get_logger().error(self._load_error)
            self._diagnostics.count("failed_loads")
            self._update_diagnostics()
            return

        self._terrain = terrain
        self._configured = loaded
        origin, source = self._choose_geo_origin(terrain)
        self.get_logger().info(
            f"map {terrain.name!r}: {terrain.rows} x {terrain.columns} cells "
            f"from {' and '.join(map(str, terrain.files)) or 'a server'}; "
            f"origin at latitude {origin[0]:.7f}, longitude {origin[1]:.7f}, "
            f"altitude {origin[2]:.2f} m ({source})"
        )
        most = self._params.cloud_max_points
        stride = _stride(loaded.window, most)
        if stride > 1:
            self.get_logger().info(
                f"outTerrainPoint: every {stride}th point of each axis (cloud_max_points {most})"
            )

        self._diagnostics.hardware_id = terrain.name
        self._show(loaded)

    def _show(self, loaded: _LoadedMap) -> None:
        """Publish the window of a loaded map."""
        window = loaded.window
        assert window is not None
        assert loaded.messages is not None
        self._window = window
        self._unread_place = None
        self._unread_problem = ""
        stamp = self.get_clock().now().to_msg()
        for topic, message in zip((self._map, self._cloud), loaded.messages, strict=True):
            message.header.stamp = stamp
            topic.publish(message)

        self._markers.take_terrain(window, self._geo_origin or window.geo_origin)
        self._update_diagnostics()
        if self._occupancy is not None:
            self._occupancy.take(window)

    def _on_place(self, x: float, y: float) -> None:
        """Move the window to a place near its edge."""
        terrain = self._terrain
        window = self._window
        if terrain is None or window is None or self._moving or self.executor is None:
            return
        if is_central(window, terrain, x, y):
            self._unread_problem = ""
            return
        if self._unread_place is not None:
            away = math.hypot(x - self._unread_place[0], y - self._unread_place[1])
            has_moved = away >= RETRY_SHARE * (window.bounds[1] - window.bounds[0])
            if not has_moved and time.monotonic() < self._unread_until_s:
                return
        self._moving = True
        self.executor.create_task(self._move_window, terrain, x, y)

    async def _move_window(self, terrain: Terrain, x: float, y: float) -> None:
        """Read and show the window about a place; the present one stays if it cannot be read."""
        waits = object()
        self._waiting[waits] = time.monotonic()
        try:
            loaded = await in_thread(self, lambda: self._shown(terrain, x, y))
        except (TerrainError, WorkError) as error:
            self._diagnostics.count("failed_windows")
            if terrain is self._terrain:
                self._unread_place = x, y
                self._unread_until_s = time.monotonic() + RETRY_S
                self._note_unread(f"the window stays behind: {error}")
            return
        finally:
            self._moving = False
            del self._waiting[waits]
        if terrain is self._terrain:
            self._configured = loaded
            self._show(loaded)

    def _note_unread(self, problem: str) -> None:
        """Log once why the window stays behind, and keep it for the diagnostics."""
        problem = " ".join(problem.split())
        if problem != self._unread_problem:
            self.get_logger().warning(problem)
        self._unread_problem = problem
        self._update_diagnostics()

    def _make_occupancy(self) -> TerrainOccupancy:
        """Create `terrain_occupancy` with its imports, for which the first cloud has not waited."""
        from rfly_terrain.ros.occupancy_topics import TerrainOccupancy

        occupancy = TerrainOccupancy(self, self._frames, self._markers.take_costs)
        if self._window is not None:
            occupancy.take(self._window)
        return occupancy

    def _choose_geo_origin(self, terrain: Terrain) -> tuple[GeoPoint, str]:
        """Return the origin and its source."""
        if self._geo_origin is not None:
            return self._geo_origin, "parameter geo_origin"
        if terrain.geo_origin is not None:
            return terrain.geo_origin, "latitude, longitude and altitude of the map"
        return DEFAULT_GEO_ORIGIN, "default; the parameter geo_origin sets it"

    def _update_diagnostics(self) -> None:
        """Update the diagnostics."""
        terrain = self._terrain
        error = self._load_error
        values: dict[str, Any] = {}
        if terrain is not None:
            x_min, x_max, y_min, y_max = terrain.bounds
            values = {"map": terrain.name, "rows": terrain.rows, "columns": terrain.columns}
            values |= {
                "extent_x_m": f"{x_min:.2f} … {x_max:.2f}",
                "extent_y_m": f"{y_min:.2f} … {y_max:.2f}",
            }

        waits = time.monotonic() - min(self._waiting.values(), default=math.inf)
        no_map = Notice(self._reason_not_to_serve(), Reason.NO_MAP_LOADED, error)
        level = ERROR if self._lifecycle is None else WARN
        self._diagnostics.set_first(
            [
                (terrain is None, level, no_map),
                (error, ERROR, f"the last load failed, the previous map is in service: {error}"),
                (
                    waits > SLOW_S,
                    WARN,
                    f"reading tiles is slow: {len(self._waiting)} queries wait, for up to "
                    f"{waits:.1f} s",
                ),
                (self._unread_problem, WARN, self._unread_problem),
                (True, OK, "serving"),
            ],
            **values,
        )

    def _publish_static_transform(self) -> None:
        """Publish the transform from the ENU to the NED frame."""
        frames = self._frames
        now = self.get_clock().now().nanoseconds
        transform = transform_to_msg(
            frames.enu_frames[0], frames.ned_frames[0], (0.0,) * 3, QUAT_ENU_NED_XYZW, now
        )
        publisher(self, TFMessage, "/tf_static", TF_STATIC_OUT).publish(
            TFMessage(transforms=[transform])
        )

    async def _get_altitude(self, request: Any, response: Any) -> Any:
        """Answer a query of one point."""
        answer, response.message = await self._query(request.frame_id, request.x, request.y, True)
        self._diagnostics.count("queries")
        if answer is not None:
            altitude, inside, normal = answer
            response.success = True
            response.inside = bool(inside)
            response.altitude = float(altitude)
            response.normal = Vector3(x=float(normal[0]), y=float(normal[1]), z=float(normal[2]))
        return response

    async def _get_altitudes(self, request: Any, response: Any) -> Any:
        """Answer a query of many points."""
        self._diagnostics.count("queries")
        if len(request.x) != len(request.y):
            response.message = (
                f"x has {len(request.x)} values and y {len(request.y)}: the lengths must agree"
            )
            return response
        if len(request.x) > MAX_POINTS_PER_CALL:
            response.message = (
                f"{len(request.x)} points in one call, at most {MAX_POINTS_PER_CALL} are taken"
            )
            return response

        answer, response.message = await self._query(
            request.frame_id, np.asarray(request.x), np.asarray(request.y), request.want_normals
        )
        if answer is not None:
            altitude, inside, normal = answer
            response.success = True
            response.altitude = flat("d", altitude)
            response.inside = flat("B", inside)
            response.normal = flat("d", normal)
        return response

    async def _query(
        self, frame_id: str, x: Any, y: Any, normals: bool
    ) -> tuple[tuple[Any, Any, Any] | None, str]:
        """Return (altitude, inside, normal) in the requested frame, or None and the reason."""
        terrain = self._terrain
        if terrain is None:
            return None, self._reason_not_to_serve()
        try:
            if frame_id == GEODETIC_FRAME:
                origin, _ = self._choose_geo_origin(terrain)
                east, north = _position_of_place(terrain, origin, x, y)
                ground = await self._ground(terrain, east, north, normals)
                return _ground_above_datum(ground, origin), ""
            frame = self._frames.resolve(frame_id or self._frame_id)
            east, north = _position_in_frame(frame, frame_id, x, y)
            ground = await self._ground(terrain, east, north, normals)
            return _ground_in_frame(ground, frame, frame_id), ""
        except (FrameError, ValueError, TerrainError, WorkError) as error:
            self._diagnostics.count("refused_queries")
            return None, str(error)

    async def _ground(self, terrain: Terrain, x: Any, y: Any, normals: bool) -> TerrainQuery:
        """Return the ground at points; tiles that are not in memory are read in a thread.

        Raises what the terrain raises, and WorkError if too many queries wait for tiles.
        """
        self._ahead.take(terrain, x, y)
        if terrain.is_loaded(x, y):
            return terrain.query(x, y, want_normals=normals)
        if len(self._waiting) >= MOST_WAITING:
            raise WorkError(f"{MOST_WAITING} queries wait for tiles: ask again in a moment")

        waits = object()
        self._waiting[waits] = time.monotonic()
        try:
            return await in_thread(self, lambda: terrain.query(x, y, want_normals=normals))
        except TerrainError as error:
            self._diagnostics.refuse("failed_tiles", str(error), subject=terrain.name)
            raise
        finally:
            del self._waiting[waits]

    def _start_thread(self, work: Callable[[], None]) -> None:
        """Run work in a thread."""
        assert self.executor is not None  # a query came through it
        self.executor.create_task(in_thread, self, work)

    async def _load_terrain(self, request: Any, response: Any) -> Any:
        """Load a map that a peer requests."""
        if not request.map:
            response.message = (
                "map is empty: give a name on the search path, or the path of a png or txt"
            )
            return response
        if self._is_inactive():
            response.message = self._reason_not_to_serve()
            return response
        if not self._loading.acquire(blocking=False):
            response.message = "another map is being loaded: ask again when it is done"
            return response

        start = time.monotonic()
        try:  # a large map takes seconds to read; queries are answered from the old one meanwhile
            loaded = await in_thread(self, lambda: self._load(request.map, requested=True))
        except WorkError as error:
            response.message = f"map {request.map!r}: {error}"
            return response
        finally:
            self._loading.release()

        self.get_logger().debug(f"map {request.map!r}: read in {time.monotonic() - start:.2f} s")
        if self._is_inactive():  # a manager came first
            response.message = self._reason_not_to_serve()
            return response
        self._use_loaded(loaded)
        terrain = loaded.terrain
        response.message = loaded.error
        if terrain is not None:
            response.success = True
            response.rows = terrain.rows
            response.columns = terrain.columns
            response.extent = [float(v) for v in terrain.bounds]
        return response


def _position_in_frame(frame: FrameToWorld, name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Return x east and y north of x, y in a frame.

    The frame's z axis must be vertical. Raises FrameError for a tilted frame, in which x and y do
    not define a vertical line.
    """
    x = np.asarray(x, dtype=float)
    y = np.asarray(y, dtype=float)
    finite_array("x", x, error=ValueError)
    finite_array("y", y, error=ValueError)
    frame.check_vertical(name)
    enu = frame.points_to_enu(np.stack([x, y, np.zeros_like(x)], axis=-1))
    return enu[..., 0], enu[..., 1]


def _ground_in_frame(ground: TerrainQuery, frame: FrameToWorld, name: str) -> tuple[Any, Any, Any]:
    """Return ground height, inside mask and normals in a frame."""
    height = np.asarray(ground.altitude)
    normal = np.empty(0) if ground.normal is None else ground.normal
    if frame.axes == "ned":
        height = up_to_down(height)
        normal = ned_to_enu(normal) if normal.size else normal

    # in a frame that is not the world's
    if not frame.is_world:
        height = (height - frame.transform.translation[2]) * frame.check_vertical(name)
        if normal.size:
            normal = quat_rotate(quat_conjugate(frame.transform.quat_xyzw), normal)
    return height, ground.inside, normal


def _position_of_place(
    terrain: Terrain, origin: GeoPoint, latitude: Any, longitude: Any
) -> tuple[Any, Any]:
    """Return x east and y north of latitudes and longitudes.

    Raises ValueError for what is no place on the Earth, and for one place that is on the map only
    with the two exchanged.
    """
    x, y = position_of(latitude, longitude, origin)
    if np.ndim(x) == 0 and are_exchanged(terrain, latitude, longitude, origin):
        raise ValueError(
            f"x is the latitude and y the longitude, and {latitude:g}, {longitude:g} is off the "
            "map; the two seem to be exchanged"
        )
    return x, y


def _ground_above_datum(ground: TerrainQuery, origin: GeoPoint) -> tuple[Any, Any, Any]:
    """Return altitude above the datum of the origin, inside mask and ENU normals."""
    normal = np.empty(0) if ground.normal is None else ground.normal
    return origin[2] + ground.altitude, ground.inside, normal


def _stride(terrain: Terrain, max_points: int) -> int:
    """Return the smallest stride whose cloud has at most that many points."""
    stride = max(1, math.isqrt(terrain.rows * terrain.columns // max_points))
    while math.ceil(terrain.rows / stride) * math.ceil(terrain.columns / stride) > max_points:
        stride += 1
    return stride
