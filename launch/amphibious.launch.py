"""ros2 launch rfly_suite amphibious.launch.py: land-air vehicles that carry out a scenario's
mission.
"""

from rfly_bringup.nodes.launch_nodes import amphibious_description


def generate_launch_description():
    """Terrain, bridge, and for each vehicle simulation, estimator, controllers and guidance."""
    return amphibious_description(__file__)
