# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Deaths by `kill -9`: their effect on others is seen, and nodes under `rfly up` die one by one."""

from __future__ import annotations

import random

import pytest

from attacks import crashes

pytestmark = pytest.mark.ros
THREE_NODES = {"rfly up": ("--map", "JacksboroFault")}


@pytest.mark.exhaustive
def test_nodes_die_one_by_one_and_the_rest_goes_on():
    """Three deaths and starts again, three deaths for good, and the command's end with each."""
    result = crashes.kill_nodes("rfly up", THREE_NODES["rfly up"], random.Random(1), 1)
    assert result.tried == 3 + 1 + 2 + 1
    assert result.failures == ()
    assert result.largest_memory_mb > 50.0
    assert 0.0 < result.longest_stall_s < crashes.PATIENCE_S


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_death_that_takes_another_node_along_is_found(monkeypatch):
    """A second victim, which the command names too late."""
    from attacks.pulse import Pulse

    renew = Pulse.renew
    with crashes.own_graph() as graph, crashes.crew(graph, *THREE_NODES["rfly up"]) as crew:

        def kill_another(pulse, name):
            renew(pulse, name)
            crew.nodes()["/trajectory_node"].kill()

        monkeypatch.setattr(crashes, "PATIENCE_S", 2.0)
        monkeypatch.setattr(Pulse, "renew", kill_another)
        crew.kill("/terrain_node", respawn=False)
    assert "an answer of /trajectory_node after /terrain_node was killed" in " ".join(crew.failures)
    assert "/terrain_node took /trajectory_node with it" in crew.failures


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_killed_fit_leaves_a_whole_file():
    result = crashes.kill_fits(random.Random(1), 1)
    assert (result.tried, result.failures) == (crashes.FITS, ())
