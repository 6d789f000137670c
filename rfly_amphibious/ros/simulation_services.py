"""Services of simulation_interfaces, under the node's name. Part of amphibious_sim_node."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from geometry_msgs.msg import Vector3
from rclpy.node import Node
from simulation_interfaces.msg import EntityState, Result, SimulationState, SimulatorFeatures
from simulation_interfaces.srv import (
    GetEntityState,
    GetSimulationState,
    GetSimulatorFeatures,
    ResetSimulation,
    SetEntityState,
    SetSimulationState,
    StepSimulation,
)

from rfly_amphibious.ros.amphibious_msgs import WORLD, header
from rfly_amphibious.simulation.simulation import Simulation
from rfly_amphibious.vehicle import state_layout as at
from rfly_common.errors import ConfigError
from rfly_common.frames import rotation_matrix

PLAYING, PAUSED, STOPPED = SimulationState.STATE_PLAYING, SimulationState.STATE_PAUSED, SimulationState.STATE_STOPPED
LOADING = SimulationState.STATE_LOADING_WORLD
STATES = {PLAYING: "playing", PAUSED: "paused", STOPPED: "stopped", LOADING: "loading the world"}
MAX_STEPS = 10_000_000

FEATURES = (
    SimulatorFeatures.ENTITY_STATE_GETTING,
    SimulatorFeatures.ENTITY_STATE_SETTING,
    SimulatorFeatures.SIMULATION_RESET,
    SimulatorFeatures.SIMULATION_RESET_TIME,
    SimulatorFeatures.SIMULATION_RESET_STATE,
    SimulatorFeatures.SIMULATION_STATE_GETTING,
    SimulatorFeatures.SIMULATION_STATE_SETTING,
    SimulatorFeatures.SIMULATION_STATE_PAUSE,
    SimulatorFeatures.STEP_SIMULATION_SINGLE,
    SimulatorFeatures.STEP_SIMULATION_MULTIPLE,
)


class Run(Protocol):
    """What the services act on."""

    run_state: int
    """one of STATES"""

    @property
    def simulation(self) -> Simulation | None:
        """None while there is no ground yet."""

    @property
    def broken(self) -> str:
        """Why it cannot go on before a reset; "": it can."""

    def go(self, state: int) -> None:
        """To play, pause or stop; to stop is to reset, too."""

    def reset(self, time: bool, state: bool) -> None:
        """Reset."""

    def step(self, ticks: int) -> None:
        """So many ticks while paused; `SimulationServices.stepped` is called afterwards."""

    def moved(self) -> None:
        """The vehicle was put elsewhere."""


class SimulationServices:
    """Answers for a simulation of one vehicle, the entity `entity`."""

    def __init__(self, node: Node, run: Run, entity: str) -> None:
        self._run, self._entity = run, entity
        node.create_service(GetSimulatorFeatures, "~/get_simulator_features", self._features)
        node.create_service(GetSimulationState, "~/get_simulation_state", self._get_state)
        node.create_service(SetSimulationState, "~/set_simulation_state", self._set_state)
        node.create_service(ResetSimulation, "~/reset_simulation", self._reset)
        node.create_service(GetEntityState, "~/get_entity_state", self._get_entity)
        node.create_service(SetEntityState, "~/set_entity_state", self._set_entity)
        stepping = node.create_service(StepSimulation, "~/step_simulation", self._step)
        # the answer waits for the steps; rclpy's executor of events knows no `async` services
        self._answer_step = stepping.send_response
        stepping.send_response = self._answer_or_wait  # type: ignore[method-assign]
        self._waiting: Any = None
        self._is_stepping = False

    @property
    def stepping(self) -> bool:
        """Whether steps that were asked for are under way."""
        return self._is_stepping

    def stepped(self, problem: str = "") -> None:
        """The steps that were asked for are done, or "why not"."""
        self._is_stepping = False
        header, self._waiting = self._waiting, None
        if header is not None:
            result = _result(Result.RESULT_OPERATION_FAILED, problem) if problem else _result(Result.RESULT_OK)
            self._answer_step(StepSimulation.Response(result=result), header)

    def _features(self, _: Any, response: Any) -> Any:
        response.features.features = FEATURES
        response.features.custom_info = f"one land-air vehicle, the entity {self._entity!r}; a step is one IMU period"
        return response

    def _get_state(self, _: Any, response: Any) -> Any:
        response.state.state = self._run.run_state
        response.result = _result(Result.RESULT_OK)
        return response

    def _set_state(self, request: Any, response: Any) -> Any:
        wanted, run = request.state.state, self._run
        if wanted not in (PLAYING, PAUSED, STOPPED):
            text = f"state {wanted}, expected {STOPPED} (stopped), {PLAYING} (playing) or {PAUSED} (paused)"
            response.result = _result(SetSimulationState.Response.INCORRECT_TRANSITION, text)
        elif run.simulation is None:
            response.result = _result(Result.RESULT_INCORRECT_STATE, "there is no ground yet")
        elif wanted == run.run_state:
            text = f"it is {STATES[wanted]} already"
            response.result = _result(SetSimulationState.Response.ALREADY_IN_TARGET_STATE, text)
        elif wanted == PLAYING and run.broken:
            text = f"{run.broken}; reset_simulation first"
            response.result = _result(SetSimulationState.Response.STATE_TRANSITION_ERROR, text)
        else:
            self._break_steps(f"the simulation is {STATES[wanted]} now")
            run.go(wanted)
            response.result = _result(Result.RESULT_OK)
        return response

    def _reset(self, request: Any, response: Any) -> Any:
        scope = request.scope or ResetSimulation.Request.SCOPE_ALL
        time, state = bool(scope & request.SCOPE_TIME), bool(scope & request.SCOPE_STATE)
        if self._run.simulation is None:
            response.result = _result(Result.RESULT_INCORRECT_STATE, "there is no ground yet")
        elif not (time or state):
            text = f"scope {scope}: nothing was spawned; expected time (1), state (2) or both"
            response.result = _result(Result.RESULT_FEATURE_UNSUPPORTED, text)
        else:
            self._break_steps("the simulation was reset")
            self._run.reset(time, state)
            response.result = _result(Result.RESULT_OK)
        return response

    def _break_steps(self, why: str) -> None:
        if self._is_stepping:
            self._run.step(0)
            self.stepped(why)

    def _step(self, request: Any, response: Any) -> Any:
        run = self._run
        problem = ""
        if run.run_state != PAUSED:
            problem = f"the simulation is {STATES[run.run_state]}, expected paused"
        elif self._is_stepping:
            problem = "steps are under way already"
        elif run.broken:
            problem = f"{run.broken}; reset_simulation first"
        if problem:
            response.result = _result(Result.RESULT_INCORRECT_STATE, problem)
            return response
        if not 1 <= request.steps <= MAX_STEPS:
            text = f"steps: {request.steps}, expected 1 … {MAX_STEPS}"
            response.result = _result(Result.RESULT_OPERATION_FAILED, text)
            return response
        self._is_stepping = True
        run.step(request.steps)
        return None

    def _answer_or_wait(self, response: Any, header: Any) -> None:
        if response is None:
            self._waiting = header
        else:
            self._answer_step(response, header)

    def _get_entity(self, request: Any, response: Any) -> Any:
        simulation = self._run.simulation
        response.result = self._known(request.entity)
        if simulation is not None and response.result.result == Result.RESULT_OK:
            response.state = _entity_state(simulation)
        return response

    def _set_entity(self, request: Any, response: Any) -> Any:
        simulation = self._run.simulation
        response.result = self._known(request.entity)
        if simulation is None or response.result.result != Result.RESULT_OK:
            return response
        frame = request.state.header.frame_id
        if frame not in ("", WORLD, "world"):
            text = f"frame {frame!r}: expected {WORLD} or empty"
            response.result = _result(Result.RESULT_OPERATION_FAILED, text)
            return response
        p, q = request.state.pose.position, request.state.pose.orientation
        v, w = request.state.twist.linear, request.state.twist.angular
        orientation = np.array((q.x, q.y, q.z, q.w))
        terrain = simulation.model.terrain
        try:
            if terrain is not None and np.isfinite((p.x, p.y)).all() and not terrain.inside(p.x, p.y):
                raise ConfigError(f"position x {p.x:g}, y {p.y:g} lies off the map, which spans {terrain.bounds}")
            ground = 0.0 if terrain is None or not np.isfinite((p.x, p.y)).all() else terrain.altitude(p.x, p.y)
            if p.z < ground:
                raise ConfigError(f"position z {p.z:g} lies below the ground, which is at {ground:g} there")
            norm = float(np.linalg.norm(orientation))
            rates = rotation_matrix(orientation).T @ (w.x, w.y, w.z) if norm > 0.0 else np.zeros(3)
            simulation.set_pose((p.x, p.y, p.z), orientation, (v.x, v.y, v.z), rates)
        except ConfigError as error:
            response.result = _result(SetEntityState.Response.INVALID_POSE, str(error))
            return response
        self._run.moved()
        return response

    def _known(self, entity: str) -> Any:
        if self._run.simulation is None:
            return _result(Result.RESULT_INCORRECT_STATE, "there is no ground yet")
        if entity != self._entity:
            return _result(Result.RESULT_NOT_FOUND, f"entity {entity!r}: there is {self._entity!r}")
        return _result(Result.RESULT_OK)


def _result(code: int, text: str = "") -> Any:
    return Result(result=code, error_message=text)


def _entity_state(simulation: Simulation) -> EntityState:
    """All in the axes of the world."""
    now = simulation.state
    derivative = simulation.derivative()
    rotation = rotation_matrix(now.orientation)
    message = EntityState(header=header(simulation.time, WORLD))
    p, q = message.pose.position, message.pose.orientation
    p.x, p.y, p.z = now.position.tolist()
    q.x, q.y, q.z, q.w = now.orientation.tolist()
    for vector, numbers in (
        (message.twist.linear, now.velocity),
        (message.twist.angular, rotation @ now.rates),
        (message.acceleration.linear, derivative[at.VELOCITY : at.VELOCITY + 3]),
        (message.acceleration.angular, rotation @ derivative[at.RATES : at.RATES + 3]),
    ):
        _fill(vector, numbers)
    return message


def _fill(vector: Vector3, numbers: Any) -> None:
    vector.x, vector.y, vector.z = np.asarray(numbers).tolist()
