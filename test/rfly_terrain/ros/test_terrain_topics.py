# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The ground of a node by `terrain_map`, whose files may come after the message."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = pytest.mark.ros


def test_files_that_come_later_are_read(domain_id, tmp_path, monkeypatch):
    """A map that another host names is refused, told once, and taken when its files are here."""
    import rclpy
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.node import Node
    from rfly_suite.msg import TerrainMap

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
    executor = SingleThreadedExecutor()
    node = Node("consumer")
    executor.add_node(node)
    counted = []
    taken = []

    class Diagnostics:
        def count(self, name):
            counted.append(name)

        def publish(self):
            pass

    try:
        latest = terrain_topics.LatestTerrain(node, lambda terrain, _: taken.append(terrain))
        latest.start(Diagnostics())
        latest._on_terrain_map(message)
        first = latest._retry
        assert "hill" in latest.error
        while latest._retry is first or latest._retry is None:
            executor.spin_once(timeout_sec=1.0)
        assert counted == ["refused_terrains"]

        for ending in (".txt", ".png"):
            (tmp_path / f"elsewhere{ending}").rename(tmp_path / f"hill{ending}")
        while not taken:
            executor.spin_once(timeout_sec=1.0)
        assert latest.error == ""
        assert latest._retry is None
        assert taken[0].altitude(3.0, 5.0) == pytest.approx(hill.altitude(3.0, 5.0), abs=0.01)

        # a new map takes the place of one that waits
        latest._on_terrain_map(TerrainMap(name="another", sha256=written.sha256))
        assert latest._retry is not None
        latest._on_terrain_map(message)
        assert latest._retry is None
    finally:
        executor.remove_node(node)
        node.destroy_node()
        executor.shutdown()
        rclpy.shutdown()
