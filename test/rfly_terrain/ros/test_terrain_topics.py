# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The ground of a node by `terrain_map`, whose files may come after the message."""

from __future__ import annotations

import threading

import numpy as np
import pytest

pytestmark = pytest.mark.ros


@pytest.mark.parametrize("often", [False, True])
def test_files_that_come_later_are_read(domain_id, tmp_path, monkeypatch, often):
    """A map that another host names is refused, named once, and taken when its files are here.

    No callback waits for the files, in either executor of our nodes, and none is read while
    another one is.
    """
    import rclpy
    from rclpy.node import Node
    from rfly_suite.msg import TerrainMap

    from rfly_common.ros.run_loop import LoneExecutor, events_executor
    from rfly_terrain.files.writer import write_height_map
    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_terrain.ros import terrain_topics

    heights = np.random.default_rng(3).uniform(0.0, 9.0, (5, 5))
    hill = HeightMap(heights, origin_x=0, origin_y=0, step_x=2, step_y=2)
    write_height_map(hill, tmp_path / "elsewhere")
    written = HeightMap.load("elsewhere", [tmp_path])
    message = TerrainMap(name="hill", sha256=written.sha256)

    monkeypatch.setattr(terrain_topics, "RETRY_S", 0.02)
    rclpy.init(
        args=["--ros-args", "-p", f"map_search_path:=[{tmp_path}]"],
        domain_id=domain_id,
    )
    executor = events_executor() if often else LoneExecutor()
    node = Node("consumer")
    executor.add_node(node)
    counted = []
    taken = []
    reads = []
    may_read = threading.Event()
    may_read.set()

    def read(wanted, path):
        assert threading.current_thread() is not threading.main_thread()
        assert may_read.wait(60.0)
        reads.append(wanted.message.name)
        return read_map(wanted, path)

    read_map = terrain_topics._read
    monkeypatch.setattr(terrain_topics, "_read", read)

    class Diagnostics:
        def count(self, name):
            counted.append(name)

        def publish(self):
            pass

    try:
        latest = terrain_topics.LatestTerrain(node, lambda terrain, _: taken.append(terrain))
        latest.start(Diagnostics())
        latest._on_terrain_map(message)
        assert latest.error == ""
        while reads.count("hill") < 3:
            executor.spin_once(timeout_sec=1.0)
        assert "hill" in latest.error
        assert counted == ["refused_terrains"]

        for ending in (".txt", ".png"):
            (tmp_path / f"elsewhere{ending}").rename(tmp_path / f"hill{ending}")
        while not taken:
            executor.spin_once(timeout_sec=1.0)
        assert latest.error == ""
        assert latest._retry is None
        assert taken[0].altitude(3.0, 5.0) == pytest.approx(hill.altitude(3.0, 5.0), abs=0.01)

        # a new map takes the place of one that waits, or is being read
        may_read.clear()
        reads.clear()
        other = TerrainMap(name="another", sha256=written.sha256)
        for each in (other, other, message, other, message):
            latest._on_terrain_map(each)
        assert taken[-1] is latest.terrain
        may_read.set()
        while latest._is_reading:
            executor.spin_once(timeout_sec=1.0)
        assert reads == ["another"]
        assert (latest.error, len(taken)) == ("", 1)
        assert latest._retry is None

        # of those that come meanwhile the last one is read
        may_read.clear()
        for name in ("b", "c", "d"):
            latest._on_terrain_map(TerrainMap(name=name, sha256=written.sha256))
        may_read.set()
        while latest._is_reading:
            executor.spin_once(timeout_sec=1.0)
        assert reads == ["another", "b", "d"]
        assert "'d'" in latest.error

        # one that is announced again and again is read once, and used
        may_read.clear()
        reads.clear()
        for _ in range(3):
            latest._on_terrain_map(TerrainMap(name="e", sha256=written.sha256))
        may_read.set()
        while latest._is_reading:
            executor.spin_once(timeout_sec=1.0)
        assert reads == ["e"]
        assert "'e'" in latest.error
    finally:
        executor.remove_node(node)
        node.destroy_node()
        executor.shutdown()
        rclpy.shutdown()
