# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Odd messages: they are odd, the same for the same seed, and two nodes withstand them.

A message that ends a node is found.
"""

from __future__ import annotations

import random

import pytest
from marks import exhaustively

pytestmark = pytest.mark.ros


def test_messages_are_odd_in_every_way_and_the_same_again():
    from rfly_suite.msg import VehicleStateArray
    from sensor_msgs.msg import PointCloud2

    from attacks.odd_messages import OddMessages

    for kind in (VehicleStateArray, PointCloud2):
        made = OddMessages(random.Random(3))
        messages = [made.odd(kind) for _ in range(2000)]
        again = OddMessages(random.Random(3))
        assert [str(again.odd(kind))[:500] for _ in range(50)] == [
            str(message)[:500] for message in messages[:50]
        ]
        stamps = {message.header.stamp.sec for message in messages}
        assert min(stamps) < 0 < max(stamps)
    made = OddMessages(random.Random(3))
    arrays = [made.odd(VehicleStateArray) for _ in range(2000)]
    assert any(len(message.position) == 3 * len(message.id) > 0 for message in arrays)
    assert any(len(message.position) != 3 * len(message.id) for message in arrays)
    assert any(value != value for message in arrays for value in message.position[:40])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chassis_control_node", exhaustively("terrain_node")])
def test_nodes_stand_odd_messages(name):
    from attacks import messages

    result = messages.ATTACKS[f"odd messages to {name}"](random.Random(1), 40)
    assert result.failures == ()
    assert result.tried >= 40
    assert result.longest_stall_s < messages.PATIENCE_S


@pytest.mark.ros
@pytest.mark.slow
@pytest.mark.parametrize("name", ["mission_node", "guidance_node"])
def test_long_texts_are_quoted_shortly(name):
    """The bridge and the fleet log what they refuse, and answer services with texts."""
    from attacks import messages

    executable, parameters = messages.NODES[name]
    result = messages.long_texts(executable, parameters, name, random.Random(1), 1)
    assert result.tried > 10
    assert result.failures == ()
