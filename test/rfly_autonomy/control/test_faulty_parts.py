# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Flights and drives in strong wind, and with parts that do not do what they are told."""

from __future__ import annotations

import numpy as np

from rfly_amphibious.dynamics.model import AmphibiousModel
from rfly_amphibious.dynamics.wind import Wind
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.pilot import Pilot, timed_setpoints
from rfly_autonomy.control.setpoint import Setpoint


def test_a_landing_in_wind_holds_its_place():
    """The wind takes 10.3° of tilt; a landing that was limited to 10° drifted with 3 m/s."""
    model = AmphibiousModel(VehicleParameters.load("scale"))
    place = (0.0, 0.0, 1.2)
    setpoints = [Setpoint(0.0, target=place), Setpoint(3.5, Mode.LAND, target=place)]
    pilot = Pilot(model, timed_setpoints(setpoints), Mode.FLIGHT)

    run = model.run(model.flying(place), pilot, 6.0, wind=Wind((14.0, 0.0, 0.0)))
    touch = int(np.argmax(run.outputs.wheel_load.any(axis=1)))
    assert run.time[touch] > 3.5
    east, north, up = run.x[touch, 3:6]
    assert np.hypot(east, north) < 0.4
    assert -up < 1.2
