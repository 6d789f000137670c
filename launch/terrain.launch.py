"""ros2 launch rfly_suite terrain.launch.py: the terrain alone, as a cloud and as services."""

from rfly_bringup.nodes.launch_nodes import launch_description
from rfly_bringup.nodes.node_set import TERRAIN


def generate_launch_description():
    """The terrain node."""
    return launch_description((TERRAIN,), __file__)
