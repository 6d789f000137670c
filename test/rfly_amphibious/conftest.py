"""Without numba the model runs as plain Python: the same results, but seconds of motion would take hours of testing.

There every derivative is still checked against the second formulation, and the parameters are.
"""

from rfly_common.accel import use_numba

collect_ignore_glob = (
    []
    if use_numba()
    else [
        "test_validation_*.py",
        "test_integration.py",
        "test_model.py",
        "test_kernels.py",
        "test_sensors.py",
        "test_estimator.py",
        "test_state_estimator_node.py",
        "test_scenario_run.py",
        "test_control_loops.py",
        "test_control_nodes.py",
        "test_simulation.py",
    ]
)
