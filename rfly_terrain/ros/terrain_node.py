# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""terrain_node: a terrain as a latched cloud and map, altitudes as services.

A thin shell around HeightMap.
"""

from __future__ import annotations

import math
import threading
import time
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
from rfly_common.errors import ConfigError, FrameError, RflyError, WorkError
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
from rfly_common.ros.run_loop import in_thread, run
from rfly_common.transform_buffer import FrameToWorld
from rfly_terrain.files.terrain_message import load_asked_map
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.height_map.places import are_exchanged, position_of
from rfly_terrain.ros.marker_topics import TerrainMarkers
from rfly_terrain.ros.node_parameters import TerrainParameters
from rfly_terrain.ros.terrain_msgs import cloud_to_msg, height_map_to_msg
from rfly_terrain.warm_up import warm_up

if TYPE_CHECKING:
    from rfly_common.ros.lifecycle import Lifecycle
    from rfly_terrain.ros.occupancy_topics import TerrainOccupancy

GEODETIC_FRAME = "wgs84"
"""frame_id of queries whose x and y are latitude and longitude, degrees."""
MAX_POINTS_PER_CALL = 10_000_000


class _LoadedMap(NamedTuple):
    """A loaded map, or the reason why there is none."""

    terrain: HeightMap | None
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

        self._terrain: HeightMap | None = None
        self._occupancy: TerrainOccupancy | None = None
        self._load_error = ""
        self._configured: _LoadedMap | None = None
        """The map that was loaded last, which a lifecycle's activation serves."""
        self._loading = threading.Lock()
        self._lifecycle: Lifecycle | None = None

        self._cloud = publisher(self, PointCloud2, "outTerrainPoint", LATCHED)
        self._map = publisher(self, TerrainMap, "terrain_map", LATCHED)
        self._markers = TerrainMarkers(self, params.marker_max_triangles)
        self._diagnostics = Diagnostics(self, "terrain", params.map, self._update_diagnostics)

        # the map first, all else after it; kernels before the first question
        if params.lifecycle:
            self._lifecycle = self._make_lifecycle()
        else:
            self._use_loaded(self._load(params.map))
        if params.publish_tf:
            self._publish_static_transform()
        warm_up()
        self._occupancy = self._make_occupancy()

        self.create_service(GetTerrainAltitude, "get_terrain_altitude", self._get_altitude)
        self.create_service(GetTerrainAltitudes, "get_terrain_altitudes", self._get_altitudes)
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
        try:
            load = load_asked_map if requested else HeightMap.load
            terrain = load(name, tuple(self._params.map_search_path))

            # messages of up to 100 MB are made in the loading thread, not in the executor's
            stride = _stride(terrain, self._params.cloud_max_points)
            ned = self._frames.axes(self._frame_id) == "ned"
            points = terrain.point_cloud_ned(stride) if ned else terrain.point_cloud(stride)
            origin, _ = self._choose_geo_origin(terrain)
            map_message = height_map_to_msg(terrain, origin, 0, self._params.terrain_map_max_cells)
            cloud_message = cloud_to_msg(points, self._frame_id, 0)
            return _LoadedMap(terrain, (map_message, cloud_message))
        except (RflyError, OSError) as error:
            return _LoadedMap(None, error=" ".join(str(error).split()))
        except MemoryError:
            return _LoadedMap(None, error=f"map {name!r}: not enough memory to load it")

    def _use_loaded(self, loaded: _LoadedMap) -> None:
        """Serve and publish a loaded map; after a failed load the present map stays."""
        terrain = loaded.terrain
        self._load_error = loaded.error
        if terrain is None or loaded.messages is None:
            self.get_logger().error(self._load_error)
            self._diagnostics.count("failed_loads")
            self._update_diagnostics()
            return

        self._terrain = terrain
        self._configured = loaded
        origin, source = self._choose_geo_origin(terrain)
        self.get_logger().info(
            f"map {terrain.name!r}: {terrain.rows} x {terrain.columns} cells "
            f"from {' and '.join(map(str, terrain.files))}; "
            f"origin at latitude {origin[0]:.7f}, longitude {origin[1]:.7f}, "
            f"altitude {origin[2]:.2f} m ({source})"
        )
        most = self._params.cloud_max_points
        stride = _stride(terrain, most)
        if stride > 1:
            self.get_logger().info(
                f"outTerrainPoint: every {stride}th point of each axis (cloud_max_points {most})"
            )

        stamp = self.get_clock().now().to_msg()
        for topic, message in zip((self._map, self._cloud), loaded.messages, strict=True):
            message.header.stamp = stamp
            topic.publish(message)

        self._markers.take_terrain(terrain)
        self._diagnostics.hardware_id = terrain.name
        self._update_diagnostics()
        if self._occupancy is not None:
            self._occupancy.take(terrain)

    def _make_occupancy(self) -> TerrainOccupancy:
        """Create `terrain_occupancy` with its imports, for which the first cloud has not waited."""
        from rfly_terrain.ros.occupancy_topics import TerrainOccupancy

        occupancy = TerrainOccupancy(self, self._frames, self._markers.take_costs)
        if self._terrain is not None:
            occupancy.take(self._terrain)
        return occupancy

    def _choose_geo_origin(self, terrain: HeightMap) -> tuple[GeoPoint, str]:
        """Return the origin and its source."""
        if self._geo_origin is not None:
            return self._geo_origin, "parameter geo_origin"
        if terrain.geo_origin is not None:
            return terrain.geo_origin, "latitude, longitude and altitude of the txt"
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

        no_map = Notice(self._reason_not_to_serve(), Reason.NO_MAP_LOADED, error)
        level = ERROR if self._lifecycle is None else WARN
        self._diagnostics.set_first(
            [
                (terrain is None, level, no_map),
                (error, ERROR, f"the last load failed, the previous map is in service: {error}"),
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

    def _get_altitude(self, request: Any, response: Any) -> Any:
        """Answer a query of one point."""
        answer, response.message = self._query(request.frame_id, request.x, request.y, True)
        self._diagnostics.count("queries")
        if answer is not None:
            altitude, inside, normal = answer
            response.success = True
            response.inside = bool(inside)
            response.altitude = float(altitude)
            response.normal = Vector3(x=float(normal[0]), y=float(normal[1]), z=float(normal[2]))
        return response

    def _get_altitudes(self, request: Any, response: Any) -> Any:
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

        answer, response.message = self._query(
            request.frame_id, np.asarray(request.x), np.asarray(request.y), request.want_normals
        )
        if answer is not None:
            altitude, inside, normal = answer
            response.success = True
            response.altitude = flat("d", altitude)
            response.inside = flat("B", inside)
            response.normal = flat("d", normal)
        return response

    def _query(
        self, frame_id: str, x: Any, y: Any, normals: bool
    ) -> tuple[tuple[Any, Any, Any] | None, str]:
        """Return (altitude, inside, normal) in the requested frame, or None and the reason."""
        if self._terrain is None:
            return None, self._reason_not_to_serve()
        try:
            if frame_id == GEODETIC_FRAME:
                origin, _ = self._choose_geo_origin(self._terrain)
                return _altitude_at_places(self._terrain, origin, x, y, normals), ""
            frame = self._frames.resolve(frame_id or self._frame_id)
            return _altitude_in_frame(self._terrain, frame, frame_id, x, y, normals), ""
        except (FrameError, ValueError) as error:
            self._diagnostics.count("refused_queries")
            return None, str(error)

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


def _altitude_in_frame(
    terrain: HeightMap, frame: FrameToWorld, name: str, x: Any, y: Any, normals: bool
) -> tuple[Any, Any, Any]:
    """Return ground height, inside mask and normals at x, y of a frame, in that frame.

    The frame's z axis must be vertical. Raises FrameError for a tilted frame, in which x and y do
    not define a vertical line.
    """
    x = np.asarray(x, dtype=float)
    y = np.asarray(y, dtype=float)
    finite_array("x", x, error=ValueError)
    finite_array("y", y, error=ValueError)
    sign = frame.check_vertical(name)

    # in the world
    enu = frame.points_to_enu(np.stack([x, y, np.zeros_like(x)], axis=-1))
    altitude_up, inside, normal_enu = terrain.query(enu[..., 0], enu[..., 1], want_normals=normals)
    height = np.asarray(altitude_up)
    normal = normal_enu if normals else np.empty(0)
    if frame.axes == "ned":
        height = up_to_down(height)
        normal = ned_to_enu(normal) if normals else normal

    # in the frame
    if not frame.is_world:
        height = (height - frame.transform.translation[2]) * sign
        if normals:
            normal = quat_rotate(quat_conjugate(frame.transform.quat_xyzw), normal)
    return height, inside, normal


def _altitude_at_places(
    terrain: HeightMap, origin: GeoPoint, latitude: Any, longitude: Any, normals: bool
) -> tuple[Any, Any, Any]:
    """Return altitude, inside mask and ENU normals of the ground at latitudes and longitudes.

    The altitude counts from where that of `origin` does. Raises ValueError for what is no place on
    the Earth, and for one place that is on the map only with the two exchanged.
    """
    x, y = position_of(latitude, longitude, origin)
    if np.ndim(x) == 0 and are_exchanged(terrain, latitude, longitude, origin):
        raise ValueError(
            f"x is the latitude and y the longitude, and {latitude:g}, {longitude:g} is off the "
            "map; the two seem to be exchanged"
        )
    altitude_up, inside, normal = terrain.query(x, y, want_normals=normals)
    return origin[2] + altitude_up, inside, normal if normals else np.empty(0)


def _stride(terrain: HeightMap, max_points: int) -> int:
    """Return the smallest stride whose cloud has at most that many points."""
    stride = max(1, math.isqrt(terrain.rows * terrain.columns // max_points))
    while math.ceil(terrain.rows / stride) * math.ceil(terrain.columns / stride) > max_points:
        stride += 1
    return stride


def main() -> None:
    """Entry point of the executable `terrain_node`."""
    run(TerrainNode)
