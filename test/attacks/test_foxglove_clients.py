# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Foxglove's clients that misbehave: they differ, and the server withstands them."""

from __future__ import annotations

import random

import pytest

from attacks import foxglove_clients


def test_clients_are_odd_in_many_ways():
    clients = foxglove_clients.odd_clients(random.Random(1), "127.0.0.1:8765")
    assert len(set(clients)) == len(clients) > 25
    assert max(map(len, clients)) > 900_000
    assert [b"Origin: http://elsewhere.example" in each for each in clients].count(True) == 1


@pytest.mark.ros
@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.needs("websockets")
def test_the_server_stands_them():
    result = foxglove_clients.foxglove_clients(random.Random(2), foxglove_clients.SHORT_TRIES)
    assert result.failures == ()
    assert result.tried == foxglove_clients.SHORT_TRIES + foxglove_clients.STALLED
