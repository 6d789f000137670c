# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MAVLink peers that ask for terrain with odd numbers."""

from __future__ import annotations

import random

import pytest

pytestmark = pytest.mark.needs("pymavlink")


def test_odd_messages_are_of_every_kind_and_can_be_sent():
    from attacks import mavlink_terrain
    from rfly_mavlink.dialect.wire import Writer, load_dialect

    rng = random.Random(1)
    writer = Writer(1)
    messages = [mavlink_terrain.odd_message(rng, load_dialect()) for _ in range(500)]
    assert len({message.get_type() for message in messages}) == 4
    assert len({writer.write(message)[10:] for message in messages}) > 200


@pytest.mark.exhaustive
@pytest.mark.ros
@pytest.mark.slow
def test_a_node_stands_it_and_no_height_is_wrong():
    from attacks import mavlink_terrain

    result = mavlink_terrain.terrain_askers(random.Random(2), mavlink_terrain.SHORT_TRIES)
    assert result.failures == ()
    assert result.tried == mavlink_terrain.SHORT_TRIES
