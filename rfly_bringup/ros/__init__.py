# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""recorder_node and spawner_node; the ROS side of the commands, clients of nodes and topics."""
