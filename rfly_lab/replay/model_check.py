# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Recorded commands through the model: how well it predicts what the vehicle did next.

The recording is cut into short windows, because small errors of a state grow without bound in a
long simulation without feedback. In each window the model begins at the recorded motion, gets the
recorded commands, and its motion at the end is compared with the recorded one. All windows are
simulated at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rfly_amphibious.dynamics.model import AmphibiousModel, Controls, ModelState
from rfly_amphibious.dynamics.wind import Wind
from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Bools, Floats
from rfly_common.errors import DynamicsError
from rfly_common.frames import quat_conjugate, quat_rotate, quat_to_euler
from rfly_common.physics import GRAVITY
from rfly_common.untrusted_files.message_log import Table
from rfly_lab.replay.recording import Recording
from rfly_lab.replay.replay import EstimatedTrack, Replay

WINDOW = 0.5
"""Length of a window, s: some ten times the lags of tyres, rotors and motors."""
COMMAND_PERIOD = 0.01
"""Time for which the model holds each recorded command, s."""
STEP = 0.001
"""Step of the integration, s."""
ON_WHEELS_SHARE = 0.5
"""Share of the weight that the wheels carry throughout a window on wheels."""
CLEAR = 0.3
"""Least height of the wheels above level ground in a window in the air, m."""
FAR_ABOVE = 1000.0
"""Height, m, of a vehicle that was never on its wheels, above the model's ground."""


@dataclass(frozen=True)
class Prediction:
    """Predictions of a group of windows against the recorded motion, in body axes."""

    change: Floats
    """Recorded changes of the velocity over a window, m/s, (k, 3)."""
    velocity: Floats
    """Predicted less recorded velocity at the end, m/s, (k, 3)."""
    rates: Floats
    """Predicted less recorded rates at the end, rad/s, (k, 3)."""


class _Windows(NamedTuple):
    """Recorded motion at the begins and ends of windows."""

    begin: EstimatedTrack
    end: EstimatedTrack
    on_wheels: Bools


def check_model(
    result: Replay, params: VehicleParameters
) -> tuple[dict[str, Prediction], list[str]]:
    """Return predictions for windows `on wheels` and `in the air`, and notes on what is missing.

    Where there is a reference with velocities, the motion is the reference's, else the estimated
    one; rates are always those of the IMU without its bias. Without a map the ground is level, and
    as high as the vehicle stood on it.
    """
    recording = result.recording
    if not {"rotor_commands", "wheel_commands"} & recording.commands.keys():
        return {}, []
    if "wheel_loads" not in recording.readings:
        return {}, ["model: left out, as without wheel_loads it is unknown where it flies"]

    windows, notes = _windows(result, params)
    stands = windows.begin.position[windows.on_wheels, 2]
    stood = float(np.median(stands)) if stands.size else np.nan
    predictions = {}
    for name, part in (("on wheels", windows.on_wheels), ("in the air", ~windows.on_wheels)):
        needed = "wheel_commands" if name == "on wheels" else "rotor_commands"
        if part.any() and needed in recording.commands:
            begin = EstimatedTrack(*(column[part] for column in windows.begin))
            end = EstimatedTrack(*(column[part] for column in windows.end))
            height = None if name == "on wheels" else stood
            try:
                predictions[name] = _predict(recording, params, begin, end, height)
            except DynamicsError as error:
                notes.append(f"model: {name}: {error}")
    return predictions, notes


def _windows(result: Replay, params: VehicleParameters) -> tuple[_Windows, list[str]]:
    """Return the windows throughout which the vehicle was on its wheels, or free of the ground."""
    recording = result.recording
    track = _motion(result)
    spans = [track.time, *(table.time for table in recording.commands.values())]
    starts = np.arange(
        max(span[0] for span in spans), min(span[-1] for span in spans) - WINDOW, WINDOW
    )
    begin, begin_near = track.at(starts)
    end, end_near = track.at(starts + WINDOW)

    # share of the weight on the wheels
    loads = recording.readings["wheel_loads"]
    share = loads.load.sum(axis=1) / (params.mass * GRAVITY)
    first = np.searchsorted(loads.time, starts)
    last = np.searchsorted(loads.time, starts + WINDOW)
    parts = [share[a:b] for a, b in zip(first.tolist(), last.tolist(), strict=True)]
    driven = np.array([part.size > 0 and part.min() > ON_WHEELS_SHARE for part in parts], bool)
    free = np.array([part.size > 0 and part.max() <= 0.0 for part in parts], bool)

    used = begin_near & end_near & (driven | free)
    found = _Windows(
        EstimatedTrack(*(column[used] for column in begin)),
        EstimatedTrack(*(column[used] for column in end)),
        driven[used],
    )
    short = [] if used.any() else [f"model: no {WINDOW:g} s on wheels or in the air throughout"]
    return found, short


def _motion(result: Replay) -> EstimatedTrack:
    """Return the recorded motion: the reference's, or the estimated one."""
    errors = result.errors
    if errors is None or not np.isfinite(errors.velocity).all():
        return result.track
    found, _ = result.track.at(errors.time)
    reference = errors.reference
    return found._replace(
        position=reference.position,
        orientation=reference.orientation,
        velocity=reference.velocity,
    )


def _predict(
    recording: Recording,
    params: VehicleParameters,
    begin: EstimatedTrack,
    end: EstimatedTrack,
    stood: float | None,
) -> Prediction:
    """Simulate windows of one kind, and compare their ends.

    `stood`: None on wheels; in the air the height at which the vehicle stood on the ground, m, NaN
    if it never did.
    """
    model = AmphibiousModel(params, recording.terrain)
    state = _first_states(recording, params, model, begin, stood)
    wind = _wind(recording, begin.time)
    modes = recording.commands.get("rotor_commands")
    torques = modes is not None and bool((modes.value[:, 0] != 0.0).all())
    steps = round(COMMAND_PERIOD / STEP)
    for k in range(round(WINDOW / COMMAND_PERIOD)):
        controls = _controls(recording, params, begin.time + k * COMMAND_PERIOD, torques)
        state = model.step(state, controls, STEP, steps=steps, wind=wind)

    back = quat_conjugate(end.orientation)
    return Prediction(
        np.asarray(quat_rotate(back, end.velocity - begin.velocity), float),
        np.asarray(quat_rotate(back, state.velocity - end.velocity), float),
        np.asarray(state.rates - end.rates, float),
    )


def _first_states(
    recording: Recording,
    params: VehicleParameters,
    model: AmphibiousModel,
    begin: EstimatedTrack,
    stood: float | None,
) -> ModelState:
    """Return the states at the begins of windows; `stood`: see `_predict`.

    A vehicle on its wheels stands in its springs; one in the air has its wheels hanging.
    """
    count = begin.time.size
    columns = state_layout.state_columns(params.rotors, len(params.wheels))
    memory = np.zeros((count, state_layout.memory_size(len(params.wheels))))
    x = np.zeros((count, params.state_size))
    state = ModelState(x, memory)
    state.position[:] = begin.position
    state.velocity[:] = begin.velocity
    state.rates[:] = begin.rates
    x[:, state_layout.QUATERNION_XYZW] = begin.orientation
    if stood is None:
        yaw = np.asarray(quat_to_euler(begin.orientation), float)[:, 2]
        for k, (place, heading) in enumerate(zip(begin.position, yaw.tolist(), strict=True)):
            stands = model.standing(float(place[0]), float(place[1]), heading)
            state.position[k] = stands.position
            x[k, state_layout.QUATERNION_XYZW] = stands.orientation
    else:
        x[:, columns["strut"]] = params.hanging_strut
        if recording.terrain is None:
            state.position[:, 2] = _height(params, begin.position[:, 2], stood)

    # actuators
    forward = np.asarray(quat_rotate(quat_conjugate(begin.orientation), begin.velocity), float)
    spin = forward[:, :1] / params.rolling_radius
    rotors = np.zeros((count, params.rotors))
    if "joints" in recording.readings:
        joints = recording.readings["joints"]
        row = (np.searchsorted(joints.time, begin.time, side="right") - 1).clip(0)
        spin = joints.wheel_rate[row] + begin.rates[:, 1:2]
        rotors = np.abs(np.nan_to_num(joints.rotor_rate[row]))
    x[:, columns["wheel_speed"]] = spin
    x[:, columns["rotor_speed"]] = rotors
    if "wheel_commands" in recording.commands:
        wheels = len(params.wheels)
        command = _held(recording.commands["wheel_commands"], begin.time)
        x[:, columns["steering"]] = command[:, :1]
        x[:, columns["drive_torque"]] = command[:, 1 : 1 + wheels]
    return state


def _height(params: VehicleParameters, height: Floats, stood: float) -> Floats:
    """Return heights above the model's level ground at 0, clear of it."""
    raised = height + FAR_ABOVE
    if np.isfinite(stood):
        raised = height - stood + params.origin_height
    return np.maximum(raised, params.origin_height + CLEAR)


def _held(table: Table, time: Floats) -> Floats:
    """Return the last rows up to some times."""
    row = np.searchsorted(table.time, time + 1e-9, side="right") - 1
    return np.asarray(table.value[row.clip(0)])


def _wind(recording: Recording, time: Floats) -> Wind:
    if "wind" not in recording.commands:
        return Wind()
    return Wind(mean=_held(recording.commands["wind"], time))


def _controls(
    recording: Recording, params: VehicleParameters, time: Floats, torques: bool
) -> Controls:
    """Return the commands at some times, one row for each window."""
    wheels = len(params.wheels)
    chassis = np.zeros((time.size, 1 + 2 * wheels))
    if "wheel_commands" in recording.commands:
        chassis = _held(recording.commands["wheel_commands"], time)
    rotor = np.zeros((time.size, params.rotors))
    if "rotor_commands" in recording.commands:
        rotor = _held(recording.commands["rotor_commands"], time)[:, 1:]
    return Controls(
        rotor_speed=None if torques else rotor,
        rotor_torque=rotor if torques else None,
        steering=chassis[:, 0],
        drive_torque=chassis[:, 1 : 1 + wheels],
        brake_torque=chassis[:, 1 + wheels :].clip(0.0),
    )
