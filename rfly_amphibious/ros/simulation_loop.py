# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Loop of a simulation: ticks in real time or lock-step, commands, services, entity.

It is part of amphibious_sim_node.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from rclpy.node import Node
from rfly_suite.msg import RotorCommand, WheelCommand
from rfly_suite.srv import InjectFault
from std_msgs.msg import String

from rfly_amphibious.ros.command_msgs import msg_to_rotor_command, msg_to_wheel_command
from rfly_amphibious.ros.node_parameters import SimulationParameters
from rfly_amphibious.ros.simulation_topics import SimulationTopics
from rfly_amphibious.simulation.faults import Fault, fault_kind, parts_of
from rfly_amphibious.simulation.pacing import Pacer
from rfly_amphibious.simulation.simulation import Simulation
from rfly_amphibious.vehicle import state_layout
from rfly_collision.shapes.vehicle_shapes import load_shapes
from rfly_common.config.checks import check_choice, finite_number
from rfly_common.errors import CommandError, ConfigError, DynamicsError
from rfly_common.frames import rotation_matrix
from rfly_common.ros.diagnostics import Diagnostics
from rfly_common.ros.endpoints import steady_timer, subscription
from rfly_common.ros.entity_services import (
    FEATURES,
    ROBOT,
    Entity,
    EntityMotion,
    EntityServices,
    Pose,
    Twist,
)
from rfly_common.ros.qos import COMMANDS
from rfly_common.ros.simulation_services import (
    LOADING,
    PAUSED,
    PLAYING,
    SCOPE_STATE,
    SCOPE_TIME,
    STATES,
    STOPPED,
    SimulationServices,
)
from rfly_common.ros.stamps import stamp_to_ns
from rfly_common.transform_buffer import WORLD
from rfly_terrain.ros.terrain_topics import NO_MAP_YET
from rfly_trajectory.fleet.entities import check_place

REPEAT_TICK_S = 0.5
"""Wall time after which an unanswered tick is published again, s."""
STEPS_WAIT_S = 5.0
"""Longest wall time that steps of a service wait for the commands of one tick, s."""
BATCH_S = 0.005
"""Wall time of ticks in a row, before messages and services have their turn, s."""
HURRY = 0.1
"""Share by which simulated time runs faster while its stamps lag behind the node's clock."""
LONGEST_LAG_S = 10.0
"""Lag of the stamps, as after a pause, that is not made up for, s."""
STILL_SHOWN_S = 0.2
"""Wall time between two vehicle_states of a simulation that stands still, s."""
MOST = 10_000.0, 200.0, 50.0
"""Largest height, m, velocity along an axis, m/s, and rate about one, rad/s, to set a vehicle to.

Far beyond, no time step is small enough.
"""
_COMMANDS = {"cmd/rotors": "refused_rotor_commands", "cmd/wheels": "refused_wheel_commands"}
"""Topics, and the counters of refused messages."""


class SimulationLoop:
    """Loop that runs the ticks that are due, and acts for SimulationServices.

    `changed()` updates the diagnostics.
    """

    def __init__(
        self,
        node: Node,
        entity: str,
        settings: SimulationParameters,
        period: float,
        topics: SimulationTopics,
        diagnostics: Diagnostics,
        changed: Callable[[], None],
    ) -> None:
        """Subscribe and offer the services; `period` is a tick's, s."""
        self._node = node
        self._settings = settings
        self._topics = topics
        self._diagnostics = diagnostics
        self._changed = changed
        self._log = node.get_logger()

        self.run_state = LOADING
        self.simulation: Simulation | None = None
        """Simulation, None before the first ground."""
        self.broken = ""
        """Reason why it cannot go on before a reset, "" if it can."""
        self.waited_since = -math.inf
        """Wall time of the tick whose commands are missing, s."""
        self.factor = math.nan
        """Measured real-time factor."""
        self._factor_from: tuple[float, float] | None = None

        # steps of a service
        self._steps_asked = 0
        self._stepped_at = -math.inf
        """Wall time of the last step, or of the request, s."""
        self._is_queued = False
        self.unanswered = list(_COMMANDS)
        """Topics of commands that are missing for the present tick, in lock-step."""

        self._fresh_at = -math.inf
        self.pacer = Pacer(settings.real_time_factor, period)
        self._period = period

        subscription(
            node, RotorCommand, "cmd/rotors", partial(self._on_command, "cmd/rotors"), COMMANDS
        )
        subscription(
            node, WheelCommand, "cmd/wheels", partial(self._on_command, "cmd/wheels"), COMMANDS
        )
        subscription(node, String, "cmd/mode", self._on_cmd_mode, COMMANDS)
        FaultService(node, lambda: self.simulation, changed)
        VehicleEntity(
            node, entity, settings.type, lambda: self.simulation, topics.stamp_ns, self._moved
        )
        text = f"one land-air vehicle, the entity {entity!r}; a step is one IMU period"
        self._services = SimulationServices(node, self, SCOPE_TIME | SCOPE_STATE, FEATURES, text)

    def start(self) -> None:
        """Start the timers, once kernels are compiled."""
        factor = self._settings.real_time_factor
        wake = self._period / factor if factor else self._period
        self._timer = steady_timer(self._node, max(wake, 0.001), self._run_due)
        self._slow_timer = steady_timer(self._node, 0.1, self._check_standstill)

    def load(self, simulation: Simulation) -> None:
        """Start with this simulation."""
        self.simulation = simulation
        self.broken = ""
        self._topics.begin(simulation)
        self.run_state = PAUSED if self._settings.paused else PLAYING
        self._restart(simulation)

    def unload(self, why: str) -> None:
        """Stop, as there is no ground any more."""
        self.simulation = None
        self.run_state = LOADING
        self._steps_asked = 0
        if self._services.stepping:
            self._services.stepped(why)
        self._changed()

    def _restart(self, simulation: Simulation) -> None:
        """Publish a simulation that is at its start, or was reset."""
        self.unanswered = list(_COMMANDS)
        self._topics.restart(simulation)
        self._restart_pace()
        self._topics.publish_start(simulation)
        self._await_answers()
        self._changed()

    def _restart_pace(self) -> None:
        self.pacer.start(time.monotonic())
        self._factor_from = None
        self.factor = math.nan
        self.waited_since = math.inf

    def _await_answers(self) -> None:
        if self._settings.lock_step:
            self.waited_since = self._topics.tick_at

    # --- services

    def go(self, state: int) -> None:
        """Play, pause or stop; stop resets, too."""
        self.run_state = state
        self._log.info(f"the simulation is {STATES[state]}")
        if state == STOPPED:
            self.reset(SCOPE_TIME | SCOPE_STATE)
        else:
            self._restart_pace()
            self._changed()

    def reset(self, scope: int) -> None:
        """Reset time, or state, or both."""
        assert self.simulation is not None
        self.simulation.reset(time=bool(scope & SCOPE_TIME), state=bool(scope & SCOPE_STATE))
        self.broken = ""
        self._restart(self.simulation)

    def step(self, ticks: int) -> None:
        """Run a number of ticks while paused; 0 cancels."""
        self._steps_asked = ticks
        self._stepped_at = time.monotonic()
        self._queue()

    def close(self) -> None:
        """Remove the action of steps from the graph."""
        self._services.destroy()

    def _moved(self) -> None:
        """Publish that the vehicle was put elsewhere."""
        assert self.simulation is not None
        self._topics.moved(self.simulation)
        self._changed()

    # --- commands

    def _on_command(self, topic: str, message: Any) -> None:
        simulation = self.simulation
        if simulation is None:
            return
        try:
            if topic == "cmd/rotors":
                command = msg_to_rotor_command(message, simulation.time, self._topics.epoch_ns)
                simulation.command_rotors(command)
            else:
                wheels = len(simulation.model.params.wheels)
                simulation.command_wheels(
                    msg_to_wheel_command(message, simulation.time, wheels, self._topics.epoch_ns)
                )
        except CommandError as error:
            self._diagnostics.refuse(_COMMANDS[topic], f"{topic} refused: {error}")
            self._changed()
            return

        answers = stamp_to_ns(message.header.stamp) == self._topics.stamp_ns(simulation)
        if self._settings.lock_step and answers:
            self.unanswered = [other for other in self.unanswered if other != topic]
            self._run_due()

    def _on_cmd_mode(self, message: String) -> None:
        """End the fail-safe on `arm`; other commands are for flight_control_node."""
        simulation = self.simulation
        if message.data != "arm" or simulation is None or not simulation.failsafe:
            return

        why_not = simulation.end_failsafe()
        if why_not:
            self._log.warning(f"the fail-safe goes on: {why_not}")
        else:
            self._log.info("the fail-safe has ended")
            self._topics.publish_failsafe(False)
        self._changed()

    # --- time

    def _queue(self) -> None:
        """Call `_run_due` again, after the messages that have come meanwhile."""
        if not self._is_queued and self._node.executor is not None:
            self._is_queued = True
            self._node.executor.create_task(self._run_queued)

    def _run_queued(self) -> None:
        self._is_queued = False
        self._run_due()

    def _run_due(self) -> None:
        """Run the ticks that are due."""
        simulation = self.simulation
        if simulation is None or self.broken:
            return

        begin = time.monotonic()
        if self._steps_asked:
            allowed = self._steps_asked
        elif self.run_state == PLAYING:
            lag = self._topics.lag(simulation)
            self.pacer.hurry = HURRY if self.pacer.period < lag < LONGEST_LAG_S else 0.0
            allowed = self.pacer.due(begin)
        else:
            return

        stepping = bool(self._steps_asked)
        ran = 0
        while ran < allowed and self.may_step():
            if not self._tick(simulation):
                return
            ran += 1
            if stepping:
                self._stepped_at = time.monotonic()
                self._services.progress(self._steps_asked - ran)
                if not self._steps_asked:  # cancelled
                    return
            if time.monotonic() - begin > BATCH_S:
                break

        if self._steps_asked:
            self._steps_asked -= ran
            if not self._steps_asked:
                self._topics.publish_vehicle(simulation)
                self._services.stepped()
        else:
            self.pacer.ran(ran)

        if ran < allowed and self.may_step():
            self._queue()
        elif not ran and allowed and not self._settings.lock_step:
            self._diagnostics.count("waits_for_commands")

    def may_step(self) -> bool:
        """Return whether the next tick's commands have come, or need not be waited for."""
        if self._settings.lock_step:
            return not self.unanswered

        simulation = self.simulation
        if not self._settings.command_patience or simulation is None or simulation.failsafe:
            return True
        now = time.monotonic()
        if not simulation.stale(simulation.period):
            self._fresh_at = now
            return True
        return now - self._fresh_at >= self._settings.command_patience

    def _tick(self, simulation: Simulation) -> bool:
        in_failsafe = simulation.failsafe
        was_crashed = simulation.crashed
        self.unanswered = list(_COMMANDS)
        try:
            samples = simulation.tick()
        except DynamicsError as error:
            self.broken = str(error)
            self.run_state = PAUSED
            self._log.error(f"the simulation cannot go on: {error}")
            self._steps_asked = 0
            if self._services.stepping:
                self._services.stepped(self.broken)
            self._changed()
            return False

        if simulation.failsafe and not in_failsafe:
            self._topics.publish_failsafe(True)
            self._log.error(f"fail-safe: commands are too old ({', '.join(simulation.stale())})")
            self._changed()

        if simulation.crashed and not was_crashed:
            self._log.error(f"crashed at {simulation.time:.3f} s: {simulation.crash_cause}")
            self._changed()

        self._topics.publish_samples(simulation, samples)
        self._await_answers()
        return True

    def _check_standstill(self) -> None:
        now = time.monotonic()
        simulation = self.simulation
        if simulation is None:
            return

        if (
            self._settings.lock_step
            and not self.may_step()
            and now - self._topics.tick_at >= REPEAT_TICK_S
        ):
            self._topics.publish_tick(simulation)
            self._diagnostics.count("ticks_told_again")

        if self._services.stepping and not self.may_step():
            self._services.check_cancel()
            if now - self._stepped_at > STEPS_WAIT_S:
                missing = (
                    f"no {' and '.join(self.unanswered)} of {simulation.time:.3f} s came within"
                )
                self._services.break_steps(
                    f"{missing} {STEPS_WAIT_S:g} s: {self._steps_asked} steps are left undone"
                )

        if now - self._topics.shown_at >= STILL_SHOWN_S:
            self._topics.publish_vehicle(simulation)

    def measure_factor(self, simulation: Simulation) -> None:
        """Update `factor`; called about once a second."""
        now = time.monotonic()
        if self._factor_from is None:
            self._factor_from = now, simulation.time
            return
        began, from_time = self._factor_from
        if now - began >= 0.9:
            self.factor = (simulation.time - from_time) / (now - began)
            self._factor_from = now, simulation.time


class VehicleEntity:
    """The only entity of a simulation, of a vehicleType.

    `simulation()` returns None before the first one, `stamp_ns(simulation)` the stamp of its time.
    `moved()` is called when the vehicle was put elsewhere.
    """

    def __init__(
        self,
        node: Node,
        name: str,
        vehicle_type: int,
        simulation: Callable[[], Simulation | None],
        stamp_ns: Callable[[Simulation], int],
        moved: Callable[[], None],
    ) -> None:
        self._simulation = simulation
        self._stamp_ns = stamp_ns
        self._moved = moved
        shapes = load_shapes()
        shape = shapes[int(shapes.index_of([vehicle_type])[0])]
        text = "land-air vehicle with its dynamics"
        self._entity = Entity(name, ROBOT, text, ("land-air",), shape.low, shape.high)
        EntityServices(node, self, {WORLD: "enu", f"{WORLD}_ned": "ned"}.get)

    def entities(self) -> Sequence[Entity] | None:
        """Return the entities, as in `Entities`."""
        return None if self._simulation() is None else (self._entity,)

    def motions(self, indices: Sequence[int]) -> tuple[int, Sequence[EntityMotion]]:
        """Return the motions, in the axes of the world."""
        simulation = self._simulation()
        assert simulation is not None
        now = simulation.state
        derivative = simulation.derivative()
        rotation = rotation_matrix(now.orientation)

        motion = EntityMotion(
            now.position,
            now.orientation,
            now.velocity,
            rotation @ now.rates,
            derivative[state_layout.VELOCITY : state_layout.VELOCITY + 3],
            rotation @ derivative[state_layout.RATES : state_layout.RATES + 3],
        )
        return self._stamp_ns(simulation), [motion for _ in indices]

    def put(self, index: int, pose: Pose | None, twist: Twist | None) -> None:
        """Set pose and motion. Raise PlacementError for a place off the map or below the ground."""
        simulation = self._simulation()
        assert simulation is not None
        now = simulation.state
        position, orientation = pose or (now.position, now.orientation)
        if pose is not None:
            check_place(simulation.model.terrain, *position.tolist())

        to_body = rotation_matrix(orientation).T
        if twist is None:
            twist = Twist(now.velocity, rotation_matrix(now.orientation) @ now.rates)

        parts = {
            "pose.position.z": position[2],
            "twist.linear": twist.linear,
            "twist.angular": twist.angular,
        }
        for (name, value), most in zip(parts.items(), MOST, strict=True):
            if np.max(np.abs(value)) > most:
                raise ConfigError(f"{name}: {np.max(np.abs(value)):g}, expected at most {most:g}")

        simulation.set_pose(position, orientation, twist.linear, to_body @ twist.angular)
        self._moved()


MEND = "mend"
"""Kind of a request that ends the faults of a part."""


class FaultService:
    """Service `~/inject_fault` of a simulation, which is None before the first ground."""

    def __init__(
        self,
        node: Node,
        simulation: Callable[[], Simulation | None],
        changed: Callable[[], None],
    ) -> None:
        self._simulation = simulation
        self._changed = changed
        self._log = node.get_logger()
        node.create_service(InjectFault, "~/inject_fault", self._serve)

    def _serve(self, request: Any, response: Any) -> Any:
        """Answer a request."""
        simulation = self._simulation()
        try:
            if simulation is None:
                raise ConfigError(str(NO_MAP_YET))
            if request.kind == MEND:
                self._mend(simulation, request)
            else:
                fault = self._fault(simulation, request)
                simulation.inject(fault)
                self._log.warning(f"{simulation.time:.3f} s: {fault}")
        except ConfigError as error:
            response.message = str(error)
        else:
            response.success = True
            self._changed()
        return response

    def _mend(self, simulation: Simulation, request: Any) -> None:
        """End the faults of a part. Raise ConfigError if it has none."""
        check_choice("part", request.part, parts_of(simulation.model.params))
        if not simulation.mend(request.part):
            raise ConfigError(f"part: {request.part} has no fault to mend")
        self._log.info(f"{simulation.time:.3f} s: {request.part} is mended")

    def _fault(self, simulation: Simulation, request: Any) -> Fault:
        """Return the requested fault from now on."""
        duration = finite_number("duration_s", request.duration_s, "s", at_least=0.0)
        return Fault(
            simulation.time,
            request.part,
            fault_kind(request.kind),
            tuple(float(number) for number in request.value),
            request.quantity,
            duration or None,
        )
