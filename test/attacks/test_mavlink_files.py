# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Hostile file transfers: the requests are varied, a leak would be noticed, the node stands it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

pytestmark = pytest.mark.needs("pymavlink")


def test_requests_cover_all_operations_and_lead_out():
    from attacks import mavlink_files

    rng = random.Random(1)
    payloads = [mavlink_files.hostile_payload(rng, Path("/tmp/logs")) for _ in range(2_000)]
    assert {len(payload) for payload in payloads} == {251}
    assert {payload[3] for payload in payloads} >= set(range(17))
    for path in (b"../", b"/tmp/secret.txt", b"\0/", b"/logs/run.mcap"):
        assert any(path in payload[12:] for payload in payloads)


def test_a_file_that_leaks_and_needless_answers_are_noticed():
    from attacks import mavlink_files

    class Leaking:
        def heard(self, _seconds):
            from pymavlink.dialects.v20 import common

            payload = (bytes(12) + mavlink_files.SECRET).ljust(251, b"\0")
            yield common.MAVLink_file_transfer_protocol_message(0, 1, 1, payload)
            yield common.MAVLink_timesync_message(1, 1)

    failures, questions = mavlink_files.check_replies([Leaking()], 0)
    assert (len(failures), questions) == (2, 0)
    failures, questions = mavlink_files.check_replies([Leaking()], 3)
    assert (len(failures), questions) == (1, 2)


@pytest.mark.ros
@pytest.mark.slow
def test_a_node_stands_it():
    from attacks import mavlink_files

    result = mavlink_files.file_transfers(random.Random(2), mavlink_files.SHORT_TRIES)
    assert result.failures == ()
    assert result.tried > 0
