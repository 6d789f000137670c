# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Time of a simulation by simulation_interfaces, under the node's name: state, reset, and steps.

Part of amphibious_sim_node and trajectory_node. Codes are those that the comments of the interfaces
define.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from rclpy.action import ActionServer, CancelResponse
from rclpy.node import Node
from rclpy.task import Future
from simulation_interfaces.action import SimulateSteps
from simulation_interfaces.msg import Result, SimulationState, SimulatorFeatures
from simulation_interfaces.srv import (
    GetSimulationState,
    GetSimulatorFeatures,
    ResetSimulation,
    SetSimulationState,
    StepSimulation,
)

from rfly_common.errors import shortened

PLAYING = SimulationState.STATE_PLAYING
PAUSED = SimulationState.STATE_PAUSED
STOPPED = SimulationState.STATE_STOPPED
LOADING = SimulationState.STATE_LOADING_WORLD
STATES = {PLAYING: "playing", PAUSED: "paused", STOPPED: "stopped", LOADING: "loading the world"}
SCOPE_TIME = ResetSimulation.Request.SCOPE_TIME
SCOPE_STATE = ResetSimulation.Request.SCOPE_STATE
SCOPE_SPAWNED = ResetSimulation.Request.SCOPE_SPAWNED
MAX_STEPS = 10_000_000
"""Most steps of one request."""
NO_GROUND = "there is no ground yet"

_FEATURES = (
    SimulatorFeatures.SIMULATION_RESET,
    SimulatorFeatures.SIMULATION_STATE_GETTING,
    SimulatorFeatures.SIMULATION_STATE_SETTING,
    SimulatorFeatures.SIMULATION_STATE_PAUSE,
    SimulatorFeatures.STEP_SIMULATION_SINGLE,
    SimulatorFeatures.STEP_SIMULATION_MULTIPLE,
    SimulatorFeatures.STEP_SIMULATION_ACTION,
)
_SCOPES = {
    SCOPE_TIME: ("time", SimulatorFeatures.SIMULATION_RESET_TIME),
    SCOPE_STATE: ("state", SimulatorFeatures.SIMULATION_RESET_STATE),
    SCOPE_SPAWNED: ("spawned", SimulatorFeatures.SIMULATION_RESET_SPAWNED),
}
"""Name and feature of each scope of a reset."""


class ControlledRun(Protocol):
    """Interface of the simulation that the services control."""

    @property
    def run_state(self) -> int:
        """One of STATES; LOADING while there is no ground."""

    @property
    def broken(self) -> str:
        """Reason why it cannot continue before a reset; "" if it can."""

    def go(self, state: int) -> None:
        """Play, pause or stop; stopping resets, too."""

    def reset(self, scope: int) -> None:
        """Reset what the bits of the scope name."""

    def step(self, ticks: int) -> None:
        """Do this many ticks while paused; 0 cancels the rest.

        The simulation calls `progress` after each tick, and `stepped` at the end.
        """


class SimulationServices:
    """Services and action of a simulation.

    `features` are those besides time's; `scopes` are the bits that a reset may have.
    """

    def __init__(
        self, node: Node, run: ControlledRun, scopes: int, features: Sequence[int], info: str
    ) -> None:
        self._node = node
        self._run = run
        self._scopes = scopes
        self._info = info

        resets = [feature for bit, (_, feature) in _SCOPES.items() if bit & scopes]
        self._features = sorted([*_FEATURES, *resets, *features])

        node.create_service(GetSimulatorFeatures, "~/get_simulator_features", self._get_features)
        node.create_service(GetSimulationState, "~/get_simulation_state", self._get_state)
        node.create_service(SetSimulationState, "~/set_simulation_state", self._set_state)
        node.create_service(ResetSimulation, "~/reset_simulation", self._reset)
        stepping = node.create_service(StepSimulation, "~/step_simulation", self._step)
        # the answer waits for the steps; rclpy's executor of events knows no `async` services
        self._answer_step = stepping.send_response
        stepping.send_response = self._answer_or_wait  # type: ignore[method-assign]

        self._waiting: Any = None
        self._goal: Any = None
        self._ended: Future | None = None
        self._steps = 0
        self._is_stepping = False

        self._server = ActionServer(
            node,
            SimulateSteps,
            "~/simulate_steps",
            self._simulate_steps,
            cancel_callback=lambda _goal: CancelResponse.ACCEPT,
        )

    def destroy(self) -> None:
        """Remove the action from the graph."""
        self._server.destroy()

    @property
    def stepping(self) -> bool:
        """True while requested steps are under way."""
        return self._is_stepping

    def progress(self, remaining: int) -> None:
        """Report a finished step to the client of the action."""
        if self._goal is None:
            return
        self._goal.publish_feedback(
            SimulateSteps.Feedback(
                completed_steps=self._steps - remaining, remaining_steps=remaining
            )
        )
        if remaining:
            self.check_cancel()

    def check_cancel(self) -> None:
        """End the steps if the client has cancelled them."""
        if self._goal is not None and self._goal.is_cancel_requested:
            self.break_steps("cancelled")

    def stepped(self, problem: str = "") -> None:
        """Answer the request for steps; `problem` says why they were not done."""
        self._is_stepping = False
        end = (
            result(Result.RESULT_OPERATION_FAILED, problem) if problem else result(Result.RESULT_OK)
        )

        header = self._waiting
        self._waiting = None
        if header is not None:
            self._answer_step(StepSimulation.Response(result=end), header)

        if self._ended is not None and not self._ended.done():
            self._ended.set_result(end)

    def break_steps(self, why: str) -> None:
        """End steps that are under way."""
        if self._is_stepping:
            self._run.step(0)
            self.stepped(why)

    def _get_features(self, _: Any, response: Any) -> Any:
        response.features.features = self._features
        response.features.custom_info = self._info
        return response

    def _get_state(self, _: Any, response: Any) -> Any:
        response.state.state = self._run.run_state
        response.result = result(Result.RESULT_OK)
        return response

    def _set_state(self, request: Any, response: Any) -> Any:
        wanted = request.state.state
        run = self._run
        if wanted not in (PLAYING, PAUSED, STOPPED):
            expected = f"{STOPPED} (stopped), {PLAYING} (playing) or {PAUSED} (paused)"
            text = f"state {wanted}, expected {expected}"
            response.result = result(SetSimulationState.Response.INCORRECT_TRANSITION, text)
        elif run.run_state == LOADING:
            response.result = result(Result.RESULT_INCORRECT_STATE, NO_GROUND)
        elif wanted == run.run_state:
            text = f"it is {STATES[wanted]} already"
            response.result = result(SetSimulationState.Response.ALREADY_IN_TARGET_STATE, text)
        elif wanted == PLAYING and run.broken:
            text = f"{run.broken}; reset_simulation first"
            response.result = result(SetSimulationState.Response.STATE_TRANSITION_ERROR, text)
        else:
            self.break_steps(f"the simulation is {STATES[wanted]} now")
            run.go(wanted)
            response.result = result(Result.RESULT_OK)

        return response

    def _reset(self, request: Any, response: Any) -> Any:
        scope = (request.scope or ResetSimulation.Request.SCOPE_ALL) & self._scopes
        if self._run.run_state == LOADING:
            response.result = result(Result.RESULT_INCORRECT_STATE, NO_GROUND)
        elif not scope:
            known = ", ".join(
                f"{name} ({bit})" for bit, (name, _) in _SCOPES.items() if bit & self._scopes
            )
            text = f"scope {request.scope}: expected bits of {known}"
            response.result = result(Result.RESULT_FEATURE_UNSUPPORTED, text)
        else:
            self.break_steps("the simulation was reset")
            self._run.reset(scope)
            response.result = result(Result.RESULT_OK)

        return response

    def _why_not(self, steps: int) -> str:
        run = self._run
        if run.run_state != PAUSED:
            return f"the simulation is {STATES[run.run_state]}, expected paused"
        if self._is_stepping:
            return "steps are under way already"
        if run.broken:
            return f"{run.broken}; reset_simulation first"
        return "" if 1 <= steps <= MAX_STEPS else f"steps: {steps}, expected 1 … {MAX_STEPS}"

    def _begin(self, steps: int) -> None:
        self._is_stepping = True
        self._steps = steps
        self._run.step(steps)

    def _step(self, request: Any, response: Any) -> Any:
        problem = self._why_not(request.steps)
        if problem:
            response.result = result(Result.RESULT_OPERATION_FAILED, problem)
            return response
        self._begin(request.steps)
        return None

    def _answer_or_wait(self, response: Any, header: Any) -> None:
        if response is None:
            self._waiting = header
        else:
            self._answer_step(response, header)

    async def _simulate_steps(self, goal: Any) -> Any:
        problem = self._why_not(goal.request.steps)
        if problem:
            goal.abort()
            return SimulateSteps.Result(result=result(Result.RESULT_OPERATION_FAILED, problem))

        self._goal = goal
        self._ended = Future(executor=self._node.executor)
        self._begin(goal.request.steps)
        end = await self._ended
        self._goal = self._ended = None

        if end.result == Result.RESULT_OK:
            goal.succeed()
        elif goal.is_cancel_requested:
            goal.canceled()
        else:
            goal.abort()
        return SimulateSteps.Result(result=end)


def result(code: int, text: str = "") -> Result:
    """Return the message of a code; the text may quote a request, and is `shortened`."""
    return Result(result=code, error_message=shortened(text))
