# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Warning about nodes of the same names: `python -m rfly_bringup.ros.domain_check /NAME …`.

It is a process next to `rfly up`, for the seconds in which nodes find each other. That keeps rclpy
out of the supervisor and delays no node.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter

from rfly_common import startup

WATCHED_S = 20.0
"""Time of watching, s. On a busy machine nodes start slowly, and those of another `rfly up` come
first.
"""


def main() -> None:
    """Print one line if a name exists twice in this ROS domain."""
    startup.install_handlers()
    import rclpy
    from rclpy.node import Node
    from rclpy.signals import SignalHandlerOptions

    from rfly_common.errors import ConfigError
    from rfly_common.ros.arguments import refusals_in_one_line

    try:
        with refusals_in_one_line():
            rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    except ConfigError:  # each node says why
        return
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
                f"{os.environ.get('ROS_DOMAIN_ID', '0')}: {', '.join(twice)}. Is another `rfly up` "
                "running? Stop it, or set ROS_DOMAIN_ID to another number.",
                flush=True,
            )
            break
        time.sleep(0.1)

    node.destroy_node()
    rclpy.try_shutdown()


if __name__ == "__main__":
    main()
