# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compilation of the vehicle's kernels, or loading from the cache, before the first step."""

from __future__ import annotations

from functools import cache


@cache
def warm_up() -> None:
    """Run the kernels of model and sensors once with the types of their arguments."""
    from rfly_amphibious.dynamics.model import AmphibiousModel, Controls
    from rfly_amphibious.sensors.sensor_parameters import SensorParameters
    from rfly_amphibious.sensors.sensor_suite import SensorSuite
    from rfly_amphibious.vehicle.parameters import VehicleParameters

    model = AmphibiousModel(VehicleParameters.load("scale"))
    state = model.standing()
    model.derivative(state.x)
    SensorSuite(model, SensorParameters.load("scale")).advance(state, Controls(), 0.2)


@cache
def warm_up_lanes() -> None:
    """Run the kernels for many vehicles in one state, side by side."""
    import numpy as np

    from rfly_amphibious.dynamics.model import AmphibiousModel, Controls, ModelState
    from rfly_amphibious.vehicle.parameters import VehicleParameters
    from rfly_common.kernels.lanes import LANES

    model = AmphibiousModel(VehicleParameters.load("scale"))
    state = model.standing()
    states = ModelState(np.tile(state.x, (LANES, 1)), np.tile(state.memory, (LANES, 1)))
    model.step(states, Controls(), 1e-3)


@cache
def warm_up_solids() -> None:
    """Run the kernels for a vehicle among solids, which are other machine code."""
    import numpy as np

    from rfly_amphibious.dynamics.model import AmphibiousModel, Controls
    from rfly_amphibious.vehicle.parameters import VehicleParameters
    from rfly_terrain.world.solids import ObjectBoxes

    level = np.array([[0.0, 0.0, 0.0, 1.0]])
    box = ObjectBoxes(np.array([[9.0, 0.0, 1.0]]), np.ones((1, 3)), level)
    model = AmphibiousModel(VehicleParameters.load("scale"), solids=box)
    state = model.standing()
    model.derivative(state.x)
    model.step(state, Controls(), 1e-3)
    model.height_above_ground(state.x[None, :3])
