"""Without numba the model runs as plain Python: the same results, but seconds of motion would take hours of testing.

There every derivative is still checked against the second formulation, and the parameters are.
"""

from rfly_common.kernels.jit import use_numba

collect_ignore_glob = (
    []
    if use_numba()
    else [
        "dynamics/test_validation_*.py",
        "dynamics/test_integration.py",
        "dynamics/test_model.py",
        "dynamics/test_kernels.py",
        "sensors/test_sensor_suite.py",
        "estimation/test_estimator.py",
        "ros/test_state_estimator_node.py",
        "scenarios/test_run.py",
        "control/test_control_loops.py",
        "ros/test_control_nodes.py",
        "simulation/test_simulation.py",
    ]
)
