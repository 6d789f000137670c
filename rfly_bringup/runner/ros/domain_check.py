"""Tells of nodes that bear the same name in this ROS domain: `python -m
rfly_bringup.runner.ros.domain_check /NAME …`.

A process of its own beside `rfly up`, for the seconds in which nodes find each other: it keeps
rclpy out of the supervisor, and delays no node.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter

from rfly_common import startup

WATCHED_S = 20.0
"""on a busy machine nodes take long to start, and until then those of the other `rfly up` are the
only ones
"""


def main() -> None:
    """One line where a name is there twice, else nothing."""
    startup.install_handlers()
    import rclpy
    from rclpy.node import Node
    from rclpy.signals import SignalHandlerOptions

    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = Node("_rfly_up", start_parameter_services=False, enable_rosout=False)
    startup.spinning()
    wanted = set(sys.argv[1:])
    end = time.monotonic() + WATCHED_S
    while time.monotonic() < end and not startup.stop_requested():
        names = node.get_node_names_and_namespaces()
        seen = Counter(f"{namespace.rstrip('/')}/{name}" for name, namespace in names)
        twice = sorted(name for name in wanted if seen[name] > 1)
        if twice:
            print(
                "warning: other nodes of the same names run in ROS domain "
                f"{os.environ.get('ROS_DOMAIN_ID', '0')}: "
                f"{', '.join(twice)}. Is another `rfly up` running? Stop it, or set ROS_DOMAIN_ID "
                "to another number.",
                flush=True,
            )
            break
        time.sleep(0.1)
    node.destroy_node()
    rclpy.try_shutdown()


if __name__ == "__main__":
    main()
