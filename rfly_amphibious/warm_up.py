"""Compiles the vehicle's kernels, or loads them from the disk cache, before anyone waits for a step."""

from __future__ import annotations

from rfly_common.accel import use_numba


def warm_up() -> None:
    """Runs every kernel once with the types of argument that a model passes. Without numba there is nothing to do."""
    if not use_numba():
        return
    from rfly_amphibious.model import AmphibiousModel, Controls
    from rfly_amphibious.parameters import VehicleParameters
    from rfly_amphibious.sensor_parameters import SensorParameters
    from rfly_amphibious.sensors import SensorSuite

    model = AmphibiousModel(VehicleParameters.load("scale"))
    state = model.standing()
    model.derivative(state.x)
    SensorSuite(model, SensorParameters.load("scale")).advance(state, Controls(), 0.1)
