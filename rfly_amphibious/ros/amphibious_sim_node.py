# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""amphibious_sim_node: simulation of the land-air vehicle and its sensors.

It runs in real time or in lock-step.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.node import Node
from rfly_suite.msg import PlacedObjectArray

from rfly_amphibious.dynamics.model import AmphibiousModel
from rfly_amphibious.ros.declared_vehicle import declare_vehicle_name
from rfly_amphibious.ros.node_parameters import SimulationParameters, WorldParameters
from rfly_amphibious.ros.range_sensor_topics import WORLDS
from rfly_amphibious.ros.simulation_loop import LONGEST_LAG_S, SimulationLoop
from rfly_amphibious.ros.simulation_setup import SimulationSetup
from rfly_amphibious.ros.simulation_topics import SimulationTopics
from rfly_amphibious.simulation.simulation import FailSafe, Simulation
from rfly_amphibious.warm_up import warm_up
from rfly_common.errors import ConfigError, FrameError
from rfly_common.ros.diagnostics import ERROR, OK, STALE, WARN, Diagnostics
from rfly_common.ros.endpoints import subscription
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import LATCHED
from rfly_common.ros.simulation_services import PLAYING, STATES
from rfly_common.transform_buffer import FrameToWorld
from rfly_sensing.neighbours import MOST_NEAR
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.ros.placed_objects_msgs import placed_objects_to_moving, placed_objects_to_solids
from rfly_terrain.ros.terrain_topics import NO_MAP_YET, LatestTerrain

WAITED_S = 1.0
"""Time in lock-step after which missing commands are reported, s."""
SLOW = 0.9
"""Share of the wanted real-time factor below which the pace is reported."""


class AmphibiousSimNode(Node):
    """Node that simulates one vehicle as soon as it has a ground to stand on."""

    def __init__(self, fail_safe: Callable[..., FailSafe]) -> None:
        """Make the node; `fail_safe`: a MakeFailSafe that takes `rotor_command` as well."""
        super().__init__("amphibious_sim_node")
        self._fail_safe = fail_safe
        self._vehicle = declare_vehicle_name(self)
        world = declare_parameters(self, WorldParameters)
        setup = SimulationSetup.of(world)
        self._setup = setup
        self._ground: LatestTerrain | None = None
        if setup.hears_terrain:
            self._ground = LatestTerrain(self, self._load)
        of_scenario = {}
        if setup.scenario is not None:
            of_scenario = {
                "method": setup.scenario.method,
                "rotor_command": setup.scenario.rotor_command,
            }
        settings = declare_parameters(self, SimulationParameters, defaults=of_scenario)
        self._settings = settings

        # objects on the ground
        scene = None if setup.scenario is None else setup.scenario.world
        self._solids = None if scene is None else scene.solids
        self._moving = None if scene is None else scene.moving_solids
        self._map_problem = ""
        self._objects_problem = ""

        self._diagnostics = Diagnostics(
            self, "simulation", "level ground", self._update_diagnostics
        )
        self._log_settings()  # first: the kernels of sensors and model take longer to load
        self._topics = SimulationTopics(self, self._vehicle, setup, settings)

        imu = setup.sensors.imu
        period = 1.0 / (imu.rate if imu is not None else 250.0)
        self._loop = SimulationLoop(
            self,
            self._vehicle,
            settings,
            period,
            self._topics,
            self._diagnostics,
            self._update_diagnostics,
        )

        subscription(self, PlacedObjectArray, "placed_objects", self._on_placed_objects, LATCHED)
        warm_up()  # before the clock runs
        self._loop.start()

        if self._ground is not None:
            self._ground.start(self._diagnostics)
        else:
            terrain = None if setup.scenario is None else setup.scenario.terrain
            self._load(terrain, None if terrain is None else terrain.geo_origin)

    def _log_settings(self) -> None:
        factor = self._settings.real_time_factor
        pace = f"{factor:g} × real time" if factor else "as fast as possible"
        lock = ", in lock-step" if self._settings.lock_step else ""
        waits = "" if self._ground is None else "; waiting for terrain_map"
        self.get_logger().info(
            f"{self._vehicle}: vehicle {self._setup.params.name!r}, {pace}{lock}{waits}"
        )

    def destroy_node(self) -> None:
        """End the thread of lidar and cameras, then the node."""
        self._topics.range_sensors.close()
        self._loop.close()
        super().destroy_node()

    # --- the ground and its objects

    def _on_placed_objects(self, message: PlacedObjectArray) -> None:
        """Replace the obstacles."""
        self._objects_problem = ""
        try:
            axes = WORLDS.get(message.header.frame_id)
            if axes is None:
                raise FrameError(f"frame {message.header.frame_id!r}, expected map or map_ned")
            moving = placed_objects_to_moving(message, FrameToWorld(axes))
            self._solids = placed_objects_to_solids(message, FrameToWorld(axes))
            self._moving = moving
        except ValueError as error:
            self._objects_problem = f"placed_objects is ignored: {error}"
            self._diagnostics.count("refused_objects")
            self.get_logger().warning(self._objects_problem)

        if self._loop.simulation is not None:
            self._loop.simulation.model.set_solids(self._solids, self._moving)
        self._update_diagnostics()

    def _load(
        self, terrain: HeightMap | None, geo_origin: tuple[float, float, float] | None
    ) -> None:
        """Start a simulation on this ground."""
        setup = self._setup
        settings = self._settings
        x, y, _ = setup.start
        if terrain is not None and not terrain.inside(x, y):
            self._refuse_map(
                f"start x {x:g}, y {y:g} lies off the map {terrain.name!r}, which spans "
                f"{terrain.bounds}"
            )
            return

        try:
            simulation = Simulation(
                AmphibiousModel(
                    setup.params,
                    terrain,
                    solids=self._solids,
                    moving=self._moving,
                    friction=setup.friction,
                ),
                setup.sensors,
                setup.start,
                fail_safe=partial(self._fail_safe, rotor_command=settings.rotor_command),
                wind=setup.wind,
                seed=setup.wind.seed,
                noise=settings.noise,
                method=settings.method,
                geo_origin=geo_origin,
                command_timeout=settings.command_timeout,
                events=() if setup.scenario is None else setup.scenario.events,
            )
        except ConfigError as error:
            if self._ground is None:
                raise
            self._refuse_map(str(error))
            return

        self._map_problem = ""
        self._diagnostics.hardware_id = "level ground" if terrain is None else terrain.name
        self._loop.load(simulation)
        self.get_logger().info(f"stands on {self._diagnostics.hardware_id!r} at x {x:g}, y {y:g}")

    def _refuse_map(self, why: str) -> None:
        """Report a map that can't be used, and wait for another one."""
        self._map_problem = why
        self.get_logger().error(why)
        self._loop.unload(why)

    # --- diagnostics

    def _update_diagnostics(self) -> None:
        loop = self._loop
        simulation = self._loop.simulation
        values: dict[str, Any] = {
            "vehicle": self._vehicle,
            "state": STATES[loop.run_state],
        }

        ground_problem = "" if self._ground is None else self._ground.problem
        if simulation is None:
            problem = self._map_problem or ground_problem
            self._diagnostics.set_first(
                [(problem, ERROR, problem), (True, STALE, NO_MAP_YET)], **values
            )
            return

        loop.measure_factor(simulation)
        lag = self._topics.lag(simulation)
        others = self._topics.range_sensors.neighbours
        values |= {
            "time_s": f"{simulation.time:.3f}",
            "real_time_factor": f"{loop.factor:.2f}",
            "overruns": loop.pacer.overruns,
            "lost_s": f"{loop.pacer.lost:.3f}",
            "stamps_behind_s": f"{lag:.3f}",
            "dropped_commands": simulation.dropped,
            "faults": "; ".join(map(str, simulation.acting_faults)) or "none",
            "other_vehicles_near": len(others.solid),
            "other_vehicles_passed_through": others.passed,
            "other_vehicles_left_out": others.left_out,
        }

        # texts
        left_out = (
            f"{others.left_out} vehicles near by are no obstacles: the nearest {MOST_NEAR} are"
        )
        lock_step = self._settings.lock_step
        wanted = self._settings.real_time_factor
        old = ", ".join(simulation.stale())
        failsafe = f"commands are too old ({old})" if old else "waits for arm on cmd/mode"
        waits = (
            lock_step and not loop.may_step() and time.monotonic() - loop.waited_since > WAITED_S
        )
        slow = loop.factor < SLOW * wanted and loop.run_state == PLAYING and not lock_step
        crashed = (
            f"crashed: {simulation.crash_cause}; reset_simulation or set_entity_state puts it on "
            "its wheels"
        )
        behind = lag > LONGEST_LAG_S and loop.run_state == PLAYING
        behind_text = (
            f"its stamps are {lag:.0f} s behind the clock: other programs follow a pause with "
            "use_sim_time (rfly up amphibious --use-sim-time)"
        )
        waits_text = (
            f"lock-step: waits for {' and '.join(loop.unanswered)} of {simulation.time:.3f} s"
        )

        self._diagnostics.set_first(
            [
                (loop.broken, ERROR, f"the simulation cannot go on: {loop.broken}"),
                (ground_problem, ERROR, ground_problem),
                (simulation.failsafe, ERROR, f"fail-safe: {failsafe}"),
                (simulation.crashed, WARN, crashed),
                (others.left_out, WARN, left_out),
                (self._objects_problem, WARN, self._objects_problem),
                (waits, WARN, waits_text),
                (behind, WARN, behind_text),
                (
                    slow,
                    WARN,
                    f"runs at {loop.factor:.2f} × real time, {wanted:g} is wanted",
                ),
                (True, OK, STATES[loop.run_state]),
            ],
            **values,
        )
