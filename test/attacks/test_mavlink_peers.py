# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MAVLink peers: what is forged is not what was heard, and the nodes withstand it."""

from __future__ import annotations

import random

import pytest
from marks import exhaustively

pytestmark = pytest.mark.needs("pymavlink")


def test_forged_datagrams_are_replayed_altered_or_of_others():
    from attacks import mavlink_peers
    from rfly_mavlink.dialect.wire import Reader, signing_key

    station = mavlink_peers.Station(9, "open sesame", link_id=3)
    other = mavlink_peers.Station(9, "another")
    reader = Reader(signing_key("open sesame"))
    heard = [station.setting(5.0)]
    assert [message.param_value for message in reader.read(heard[0])] == [5.0]

    rng = random.Random(1)
    forged = {mavlink_peers.forged(rng, heard, [other]) for _ in range(200)}
    assert heard[0] in forged
    assert len(forged) > 100
    assert not [message for each in forged for message in reader.read(each)]
    for each in (station, other):
        each.close()


@pytest.mark.ros
@pytest.mark.slow
@pytest.mark.parametrize("name", ["signed stations", exhaustively("odd autopilots")])
def test_a_node_stands_it(name):
    from attacks import mavlink_peers

    result = mavlink_peers.ATTACKS[name](random.Random(2), mavlink_peers.SHORT_TRIES)
    assert result.failures == ()
    assert result.tried > 0
