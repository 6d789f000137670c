# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""terrain_node under a lifecycle manager, by the services that Nav2's and `ros2 lifecycle` call."""

from __future__ import annotations

import numpy as np
import pytest
from node_harness import wait_until

from rfly_terrain.files.writer import write_map

pytestmark = pytest.mark.ros
NODE = "terrain_node"


@pytest.fixture
def maps(tmp_path):
    """Two level maps, 4 and 9 m above the origin."""
    for height in (4.0, 9.0):
        path = tmp_path / f"level{height:.0f}"
        write_map(np.full((5, 5), height), path, origin_x=0, origin_y=0, step_x=1, step_y=1)
    return tmp_path


class Manager:
    """The node as a lifecycle manager and a user of its map see it."""

    def __init__(self, domain_id, **parameters):
        from lifecycle_msgs.srv import ChangeState, GetState
        from nav_msgs.msg import OccupancyGrid
        from node_harness import NodeProcess, Peer
        from rfly_suite.msg import TerrainMap
        from rfly_suite.srv import GetTerrainAltitude, LoadTerrain

        from rfly_common.ros.qos import LATCHED

        self._services = ChangeState, GetState, GetTerrainAltitude, LoadTerrain
        self.process = NodeProcess(NODE, domain_id, {"lifecycle": "true", **parameters})
        self.peer = Peer(domain_id)
        self.maps = self.peer.receive(TerrainMap, "terrain_map", LATCHED)
        self.grids = self.peer.receive(OccupancyGrid, "terrain_occupancy", LATCHED)

    def change(self, name):
        """Return whether the transition succeeded, and the state after it."""
        from lifecycle_msgs.msg import Transition

        change_state, get_state, *_ = self._services
        transition = Transition(id=getattr(Transition, f"TRANSITION_{name.upper()}"))
        answer = self.peer.call(change_state, f"{NODE}/change_state", transition=transition)
        return answer.success, self.peer.call(get_state, f"{NODE}/get_state").current_state.label

    def altitude(self):
        answer = self.peer.call(self._services[2], "get_terrain_altitude", x=1.0, y=1.0)
        return answer.altitude if answer.success else answer.message

    def load(self, name):
        answer = self.peer.call(self._services[3], "load_terrain", map=name)
        return answer.message or answer.success

    def close(self):
        self.peer.close()
        assert self.process.stop() == 0, self.process.output


@pytest.fixture
def manage(domain_id, maps):
    managers = []

    def start(name):
        folder = f"['{maps}']"
        managers.append(Manager(domain_id, map=name, map_search_path=folder))
        return managers[-1]

    yield start
    for manager in managers:
        manager.close()


def test_a_manager_brings_the_node_up_and_down(manage):
    inactive = "the lifecycle's state is inactive, expected active"
    manager = manage("level4")
    assert "state is unconfigured" in manager.altitude()
    assert manager.change("configure") == (True, "inactive")
    assert manager.altitude() == manager.load("level9") == inactive
    assert (manager.maps, manager.grids) == ([], [])

    assert manager.change("activate") == (True, "active")
    assert manager.altitude() == 4.0
    manager.peer.spin_until(lambda: manager.maps and manager.grids)
    assert [each.height[0] for each in manager.maps] == [4.0]

    # a map that was loaded meanwhile is kept until cleanup
    assert manager.load("level9") is True
    manager.peer.spin_until(lambda: len(manager.maps) == 2)
    assert manager.change("deactivate") == (True, "inactive")
    assert manager.altitude() == inactive
    assert manager.change("activate") == (True, "active")
    assert manager.altitude() == 9.0
    assert manager.change("deactivate") == (True, "inactive")
    assert manager.change("cleanup") == (True, "unconfigured")
    assert manager.change("configure") == (True, "inactive")
    assert manager.change("activate") == (True, "active")
    assert manager.altitude() == 4.0
    manager.peer.spin_until(lambda: len(manager.maps) == 4)
    assert [each.height[0] for each in manager.maps] == [4.0, 9.0, 9.0, 4.0]

    assert manager.change("active_shutdown") == (True, "finalized")
    assert "state is finalized" in manager.altitude()


def test_a_map_that_cannot_be_loaded_fails_to_configure_and_may_be_tried_again(manage, maps):
    manager = manage("level5")
    assert manager.change("configure") == (False, "unconfigured")
    # the log comes by a pipe, the answer by DDS
    wait_until(lambda: "map 'level5'" in manager.process.output, lambda: manager.process.output)
    assert manager.change("activate") == (False, "unconfigured")

    write_map(np.full((5, 5), 5.0), maps / "level5", origin_x=0, origin_y=0, step_x=1, step_y=1)
    assert manager.change("configure") == (True, "inactive")
    assert manager.change("activate") == (True, "active")
    assert manager.altitude() == 5.0


def test_diagnostics_say_that_a_manager_has_not_activated_it(manage):
    from diagnostic_msgs.msg import DiagnosticArray

    from rfly_common.ros.qos import STATE_OUT

    manager = manage("level4")
    received = manager.peer.receive(DiagnosticArray, "/diagnostics", STATE_OUT)

    def terrain():
        statuses = [s for each in received for s in each.status if s.name.endswith(": terrain")]
        return [(status.level, status.message) for status in statuses]

    waiting = (b"\x01", "the lifecycle's state is unconfigured, expected active")
    manager.peer.spin_until(lambda: waiting in terrain())
    assert manager.change("configure")[0]
    assert manager.change("activate")[0]
    manager.peer.spin_until(lambda: (b"\x00", "serving") in terrain())
