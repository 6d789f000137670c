# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""mapping_node: clouds of a sensor that moves while it measures become the voxels of the walls that
were there.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from marks import exhaustively
from node_harness import PATIENCE

pytestmark = pytest.mark.ros

SIDE = 0.2
SPEED = 10.0
TURN = 2.0
"""m/s east and rad/s to the left"""
MOUNT = np.array((0.4, 0.0, 0.5))
"""of the lidar on base_link, which it looks backwards from"""
START = 1_000_000_000_000
"""ns"""


def pose_at(seconds):
    """(position, yaw) of base_link."""
    return np.array((SPEED * seconds, 2.1, 1.0)), TURN * seconds


def turned(points, yaw):
    c = math.cos(yaw)
    s = math.sin(yaw)
    return points @ np.array(
        (
            (c, s, 0),
            (-s, c, 0),
            (0, 0, 1),
        )
    )


def wall(columns=100, seconds=0.1):
    """(points in the sensor's axes, times s) of a wall at y = 8.1 seen by a sensor that drives
    along and turns.
    """
    times = np.linspace(0.0, seconds, columns)
    points = []
    places = []
    for when in times:
        position, yaw = pose_at(when)
        sensor = position + turned(MOUNT[None], yaw)[0]
        for bearing, height in ((1.2, -0.02), (1.7, 0.1), (2.0, -0.05)):
            direction = np.array((math.cos(bearing), math.sin(bearing), height))
            end = sensor + direction * (8.1 - sensor[1]) / direction[1]
            # looking backwards: half a turn about z
            points.append(turned((end - sensor)[None], -(yaw + math.pi))[0])
            places.append(end)
    return np.array(points), np.repeat(times, 3), np.array(places)


def cloud(points, times, stamp_ns, frame="amphibious/lidar_link", extra=4):
    from sensor_msgs.msg import PointCloud2, PointField

    from rfly_common.ros.stamps import ns_to_stamp

    kind = np.dtype(
        [
            ("x", "<f4"),
            ("y", "<f4"),
            ("z", "<f4"),
            ("pad", "u1", extra),
            ("ring", "<u2"),
            ("time", "<f4"),
        ]
    )
    table = np.zeros(len(points), kind)
    for name, values in zip("xyz", points.T, strict=True):
        table[name] = values
    table["time"] = times
    message = PointCloud2(
        height=1, width=len(points), point_step=kind.itemsize, row_step=kind.itemsize * len(points)
    )
    message.fields = [
        PointField(name=name, offset=kind.fields[name][1], datatype=datatype, count=1)
        for name, datatype in (
            ("x", 7),
            ("y", 7),
            ("z", 7),
            ("ring", 4),
            ("time", 7),
        )
    ]
    message.data = table.tobytes()
    message.header.frame_id = frame
    message.header.stamp = ns_to_stamp(stamp_ns)
    return message


def cells(points):
    return {tuple(cell) for cell in np.floor(np.asarray(points) / SIDE).astype(int).tolist()}


def test_clouds_are_read_with_their_times():
    from rfly_autonomy.ros.mapping_node import msg_to_points
    from rfly_common.errors import SensorMessageError

    points = np.array(
        (
            (1.0, 2.0, 3.0),
            (np.nan, 0.0, 0.0),
            (4.0, 5.0, 6.0),
        )
    )
    message = cloud(points, [0.0, 0.02, 0.05], START)
    read = msg_to_points(message)
    assert read.points.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert (read.times_ns - START).tolist() == pytest.approx([0, 50_000_000], abs=10)
    # Ouster's nanoseconds
    message.fields[4].name = "t"
    message.fields[4].datatype = 6
    message.data = cloud(points, np.array([0, 7, 9], "<u4").view("<f4"), START).data
    assert (msg_to_points(message).times_ns - START).tolist() == [0, 9]
    message.fields = message.fields[:4]
    assert (msg_to_points(message).times_ns == START).all(), "all at once without a time"
    for change, expected in (
        ({"fields": message.fields[:2]}, "z is missing"),
        ({"width": 4}, r"bytes do not hold 1 x 4 points|row"),
        ({"width": 3_000_000}, "3000000 points, allowed: up to 2000000"),
        ({"point_step": 10}, "field z lies beyond its points of 10 bytes"),
    ):
        broken = cloud(points, [0.0] * 3, START)
        for name, value in change.items():
            setattr(broken, name, value)
        with pytest.raises(SensorMessageError, match=expected):
            msg_to_points(broken)
    with pytest.raises(SensorMessageError, match="field time is more than 10 s off its stamp"):
        msg_to_points(cloud(points, [0.0, 0.0, 1e9], START))


class Rig:
    """The node, and a vehicle that publishes poses and clouds for it."""

    def __init__(self, peer):
        from diagnostic_msgs.msg import DiagnosticArray
        from geometry_msgs.msg import TransformStamped
        from nav_msgs.msg import Odometry
        from octomap_msgs.msg import Octomap
        from sensor_msgs.msg import PointCloud2
        from tf2_msgs.msg import TFMessage

        from rfly_common.ros.qos import LATCHED, SENSORS, STATE_OUT, TF_STATIC_OUT

        self.peer = peer
        self.maps = peer.receive(Octomap, "octomap", LATCHED)
        self.voxels = peer.receive(PointCloud2, "occupied_voxels", LATCHED)
        self.said = peer.receive(DiagnosticArray, "/diagnostics", STATE_OUT)
        static = TransformStamped()
        static.header.frame_id = "amphibious/base_link"
        static.child_frame_id = "amphibious/lidar_link"
        shift = static.transform.translation
        shift.x, shift.y, shift.z = MOUNT.tolist()
        static.transform.rotation.z = 1.0
        static.transform.rotation.w = 0.0
        self.static = peer.publisher(TFMessage, "/tf_static", TF_STATIC_OUT)
        self.static.publish(TFMessage(transforms=[static]))
        self.odometry = peer.publisher(Odometry, "odometry/global", STATE_OUT)
        self.clouds = peer.publisher(PointCloud2, "lidar/points", SENSORS)

    def tell_pose(self, seconds, base_ns=START, frame="map"):
        from nav_msgs.msg import Odometry

        from rfly_common.ros.stamps import ns_to_stamp

        message = Odometry(child_frame_id="amphibious/base_link")
        message.header.frame_id = frame
        message.header.stamp = ns_to_stamp(base_ns + round(seconds * 1e9))
        position, yaw = pose_at(seconds)
        place = message.pose.pose.position
        attitude = message.pose.pose.orientation
        place.x, place.y, place.z = position.tolist()
        attitude.z = math.sin(yaw / 2)
        attitude.w = math.cos(yaw / 2)
        self.odometry.publish(message)

    def value(self, name):
        from node_harness import diagnostic

        status = diagnostic(self.said, "mapping")
        return None if status is None else status[2].get(name)

    def counter(self, name):
        return int(self.value(name) or 0)


@pytest.fixture
def running(domain_id, tmp_path):
    from node_harness import NodeProcess, Peer

    file = tmp_path / "wall.bt"
    parameters = {"file": str(file), "publish_rate": "20.0", "max_range": "30", "rate": "9.0"}
    with NodeProcess("mapping_node", domain_id, parameters) as node:
        peer = Peer(domain_id)
        try:
            yield Rig(peer), file, node
        finally:
            peer.close()
        assert node.stop() == 0, node.output
        assert "Traceback" not in node.output


def map_wall(rig):
    """Drives along the wall; the first message of its voxels."""
    points, times, _ = wall()
    # the node may meet a publisher after that has met the node, and what is said between is lost
    rig.peer.spin_until(lambda: rig.tell_pose(-0.01) or rig.value("newest_pose_s") == "999.990")
    for seconds in np.arange(0.0, 0.095, 0.01):
        rig.tell_pose(seconds)
    rig.peer.spin_until(
        lambda: (
            rig.clouds.publish(cloud(points, times, START)) or rig.value("waiting_clouds") == "1"
        )
    )
    assert not rig.voxels, "it waits for a pose after the last point"
    for seconds in np.arange(0.1, 0.13, 0.01):
        rig.tell_pose(seconds)
    return rig.peer.spin_until(lambda: rig.voxels and rig.voxels[-1])


def save(rig):
    from std_srvs.srv import Trigger

    return rig.peer.call(Trigger, "mapping_node/save")


def test_a_wall_seen_on_the_way_is_where_it_is(running):
    """A sweep at 10 m/s and 2 rad/s is not bent, as one pose for all rays would by a metre."""
    from rfly_terrain.ros.terrain_msgs import msg_to_cloud

    rig, file, _ = running
    points, _, places = wall()
    bent = turned(points, math.pi)[:, 1] + 2.1  # all from the first pose
    assert np.ptp(bent) > 0.9
    message = map_wall(rig)
    got = msg_to_cloud(message).reshape(-1, 3).astype(float)
    assert message.header.frame_id == "map"
    # poses of a turn lie on lines between those that are told: some millimetres off the arc
    near = cells(places) | cells(places + 0.003) | cells(places - 0.003)
    assert cells(got) <= near
    assert len(cells(got) & cells(places)) > 0.97 * len(cells(places))
    assert {y for _, y, _ in cells(got)} == {40}, "a wall of one voxel"
    octomap = rig.peer.spin_until(lambda: rig.maps and rig.maps[-1])
    assert (octomap.binary, octomap.id, octomap.resolution) == (True, "OcTree", SIDE)
    answer = save(rig)
    assert answer.success, answer.message
    assert answer.message.endswith(f"voxels in {file}")
    head, _, data = file.read_bytes().partition(b"\ndata\n")
    assert head.startswith(b"# Octomap OcTree binary file\n")
    assert data == np.array(octomap.data, np.int8).tobytes(), (
        "the message is the file without its head"
    )


@pytest.mark.needs("pyoctomap")
def test_octomap_reads_what_the_node_saved(running):
    import pyoctomap

    rig, file, _ = running
    map_wall(rig)
    assert save(rig).success
    tree = pyoctomap.OcTree(0.1)
    assert tree.readBinary(str(file))
    _, _, places = wall()
    known = [tree.search(place) for place in places[::7]]
    assert sum(node is not None and tree.isNodeOccupied(node) for node in known) > 0.95 * len(known)
    free = tree.search(0.5 * (pose_at(0.0)[0] + MOUNT + places[0]))
    assert free is not None
    assert not tree.isNodeOccupied(free)


def test_too_many_clouds_are_skipped_and_a_jump_of_the_clock_begins_anew(running):
    rig, _, _ = running
    map_wall(rig)
    points, times, _ = wall()
    later = START + 60 * 1_000_000_000
    skipped = rig.counter("skipped_clouds")
    for seconds in np.arange(-0.01, 0.12, 0.01):
        rig.tell_pose(seconds, later)
    rig.clouds.publish(cloud(points, times, later))
    rig.clouds.publish(cloud(points, times, later + 20_000_000))  # 50 clouds a second, 9 are taken
    rig.peer.spin_until(lambda: rig.counter("skipped_clouds") > skipped)
    for seconds in np.arange(-0.01, 0.12, 0.01):  # simulated time begins anew
        rig.tell_pose(seconds)
    rig.peer.spin_until(lambda: rig.value("newest_pose_s") == "1000.110")
    taken = rig.counter("clouds")
    assert taken >= 1

    rig.clouds.publish(cloud(points, times, START))
    rig.peer.spin_until(lambda: rig.counter("clouds") == taken + 1)


def test_what_can_not_be_used_is_counted_and_told(running):
    rig, _, _ = running
    map_wall(rig)
    points, times, _ = wall()
    cases = (
        (
            "refused_poses",
            lambda: rig.tell_pose(0.2, frame="nowhere"),
            "odometry/global: frame 'nowhere' is not",
        ),
        (
            "refused_clouds",
            lambda: rig.clouds.publish(cloud(points, [1e6] * 300, START + 10**10)),
            "field time is more than 10 s",
        ),
        (
            "lost_clouds",
            lambda: rig.clouds.publish(cloud(points, times, START - 5 * 10**9)),
            "before the oldest pose",
        ),
    )
    for name, tell, expected in cases:
        before = rig.counter(name)
        tell()
        rig.peer.spin_until(lambda name=name, before=before: rig.counter(name) == before + 1)
        rig.peer.spin_until(lambda expected=expected: expected in rig.value("last_trouble"))


def test_reset_forgets_and_the_file_of_save_is_the_operators(running):
    from rcl_interfaces.srv import SetParameters
    from rclpy.parameter import Parameter
    from std_srvs.srv import Trigger

    rig, file, _ = running
    before = len(rig.voxels)
    assert rig.peer.call(Trigger, "mapping_node/reset").success
    rig.peer.spin_until(lambda: len(rig.voxels) > before and rig.voxels[-1].width == 0)

    set_file = [Parameter("file", value=str(file.parent / "elsewhere.bt")).to_parameter_msg()]
    (refused,) = rig.peer.call(
        SetParameters, "mapping_node/set_parameters", parameters=set_file
    ).results
    assert not refused.successful, "a peer would choose what is written over"
    answer = save(rig)
    assert (answer.success, answer.message) == (True, f"0 voxels in {file}")
    assert [path.name for path in file.parent.iterdir()] == ["wall.bt"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no/map.bt", "No such file"),
        ("map.ply", r"maps are written as .bt, not '.ply'"),
        ("", "the parameter file is empty"),
    ],
)
def test_a_map_that_can_not_be_saved(domain_id, tmp_path, name, reason):
    from node_harness import NodeProcess, Peer
    from std_srvs.srv import Trigger

    parameters = {"file": str(tmp_path / name)} if name else {}
    with NodeProcess("mapping_node", domain_id, parameters):
        answer = Peer(domain_id).call(Trigger, "mapping_node/save", changes=False)
    assert not answer.success
    assert reason in answer.message


def ground(x, y):
    """Cells of 0.5 m that are level, so that it matters in no cell where its points lie; no two are
    alike.
    """
    return 0.25 * math.floor(x / 0.5) - 0.125 * math.floor(y / 0.5)


def test_the_ground_under_the_way_is_a_grid_map(domain_id):
    """Two clouds from places 6 m apart, on a map of 12 m: it has moved, and its buffers have
    wrapped around.
    """
    from grid_map_msgs.msg import GridMap
    from grid_map_reference import cells
    from node_harness import NodeProcess, Peer
    from std_srvs.srv import Trigger

    from rfly_common.ros.qos import LATCHED

    parameters = {
        "octomap": "false",
        "elevation_length": "12.0",
        "elevation_resolution": "0.5",
        "publish_rate": "20.0",
    }
    with NodeProcess("mapping_node", domain_id, parameters) as node:
        peer = Peer(domain_id)
        rig = Rig(peer)
        maps = peer.receive(GridMap, "elevation_map", LATCHED)
        rig.peer.spin_until(lambda: rig.tell_pose(-0.01) or rig.value("newest_pose_s") == "999.990")
        # nor has it met the clouds' publisher before it has refused one, which leaves no trace in
        # the map
        unusable = cloud(np.zeros((1, 3)), [1e6], START)
        rig.peer.spin_until(lambda: rig.clouds.publish(unusable) or rig.counter("refused_clouds"))
        known = {}
        for when in (0.0, 0.6):
            sensor = pose_at(when)[0] + turned(MOUNT[None], pose_at(when)[1])[0]
            x, y = (sensor[:2] + [(a, b) for a in (-2.0, 0.25, 1.0) for b in (-1.5, 0.1, 2.0)]).T
            points = np.column_stack([x, y, [ground(*place) for place in zip(x, y, strict=True)]])
            known |= {
                (math.floor(a / 0.5), math.floor(b / 0.5)): ground(a, b)
                for a, b in zip(x, y, strict=True)
            }
            in_lidar = turned(points - sensor, -(pose_at(when)[1] + math.pi))
            rig.tell_pose(when)
            rig.clouds.publish(cloud(in_lidar, np.zeros(len(points)), START + round(when * 1e9)))
            rig.peer.spin_until(
                lambda when=when: (
                    rig.tell_pose(when + 0.01) or rig.counter("clouds") == 1 + (when > 0)
                )
            )
        rig.peer.spin_until(lambda: maps and maps[-1].header.stamp.nanosec == 600_000_000)
        assert maps[-1].layers == ["elevation", "variance"]
        assert maps[-1].header.frame_id == "map"
        assert (maps[-1].outer_start_index, maps[-1].inner_start_index) != (0, 0)
        middle = np.floor(sensor[:2] / 0.5).astype(int)
        for (x, y), layers in cells(maps[-1]).items():
            cell = round(x / 0.5 - 0.5), round(y / 0.5 - 0.5)
            assert -12 <= cell[0] - middle[0] < 12, "the sensor is in the middle"
            assert layers["elevation"] == pytest.approx(
                known.pop(cell, math.nan), abs=1e-5, nan_ok=True
            )
            assert math.isnan(layers["variance"]) == math.isnan(layers["elevation"])
        assert len(known) == 3, "what was left behind is forgotten, the rest is there"
        refused = peer.call(Trigger, "mapping_node/save")
        assert (refused.success, refused.message) == (
            False,
            "there are no voxels to save: the parameter octomap is false",
        )
        assert peer.call(Trigger, "mapping_node/reset").success
        rig.peer.spin_until(
            lambda: all(math.isnan(each["elevation"]) for each in cells(maps[-1]).values())
        )
        peer.close()
        assert node.stop() == 0, node.output


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("hit", "-1.0", "hit is -1.0, allowed: 0.01 … 20"),
        exhaustively(
            "elevation_resolution",
            "0.001",
            "parameter elevation_resolution: ",
        ),
    ],
)
def test_a_parameter_that_can_not_be_ends_the_node_in_one_line(domain_id, name, value, expected):
    from node_harness import NodeProcess

    with NodeProcess("mapping_node", domain_id, {name: value}) as node:
        assert node.process.wait(PATIENCE) == 2
        node.stop()
        assert expected in node.output
        assert "Traceback" not in node.output


def test_who_went_away_leaves_no_voxels(domain_id):
    """A wall is seen all the time, a person up to 0.4 s, in front of nothing that rays end in:
    forgotten at 2.4 s.
    """
    from node_harness import NodeProcess, Peer

    from rfly_common.ros.stamps import ns_to_stamp
    from rfly_terrain.ros.terrain_msgs import msg_to_cloud

    side, up = (
        axis.reshape(-1)
        for axis in np.meshgrid(np.arange(-0.95, 1.0, 0.1), np.arange(0.15, 1.9, 0.1))
    )
    wall_points = np.column_stack([np.full(len(side), 8.1), 5.0 + side, up])
    person = np.column_stack([np.full(len(side), 5.1), 0.25 * side, up])
    with NodeProcess(
        "mapping_node", domain_id, {"forget_after": "2.0", "publish_rate": "50.0"}
    ) as node:
        peer = Peer(domain_id)
        try:
            rig = Rig(peer)
            for number in range(25):
                points = np.concatenate([wall_points, person]) if number < 5 else wall_points
                stamp = START + number * 10**8
                message = cloud(points, np.zeros(len(points)), stamp, "amphibious/base_link")

                def told(message=message, stamp=stamp):
                    rig.clouds.publish(message)
                    for later in (-(10**7), 0, 10**7):
                        rig.odometry.publish(pose_east(0.0, ns_to_stamp(stamp + later)))
                    return rig.voxels and rig.voxels[-1].header.stamp == ns_to_stamp(stamp)

                peer.spin_until(told)
                if number < 5:
                    assert len(people(rig.voxels[-1], msg_to_cloud)) > 20
            assert not len(people(rig.voxels[-1], msg_to_cloud))
            assert cells(msg_to_cloud(rig.voxels[-1]).reshape(-1, 3)) == cells(wall_points)
            peer.spin_until(lambda: rig.counter("forgotten_voxels") > 20)
        finally:
            peer.close()
        assert node.stop() == 0, node.output


def people(message, read):
    """Voxels before the wall."""
    points = read(message).reshape(-1, 3)
    return points[points[:, 0] < 6.0]


def memory(node, field):
    """Bytes of the node's process, by /proc/PID/status."""
    with open(f"/proc/{node.process.pid}/status", encoding="ascii") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith(field))


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_full_map_takes_less_than_80_mb(domain_id):
    """Clouds of more than a million voxels at places 60 m apart, with the default settings and a
    subscriber.

    The peak counts above the idle node, most of which are pages of shared libraries: they differ by
    tens of megabytes.
    """
    from node_harness import NodeProcess, Peer

    from rfly_autonomy.mapping.octomap_grid import warm_up
    from rfly_common.ros.stamps import ns_to_stamp

    warm_up()  # a node that compiles its kernels itself takes 90 MB more
    rng = np.random.default_rng(7)
    with NodeProcess("mapping_node", domain_id, fresh=True) as node:
        peer = Peer(domain_id)
        try:
            rig = Rig(peer)
            peer.spin_until(lambda: "waiting for lidar/points" in node.output)
            idle = memory(node, "VmRSS")
            for number in range(5):
                rays = rng.normal(size=(8_000, 3))
                points = (
                    60.0 * rays / np.linalg.norm(rays, axis=1)[:, None]
                )  # beyond max_range: free up to there
                points[::2] *= 0.6
                stamp = START + number * 10**9
                message = cloud(points, np.zeros(len(points)), stamp, "amphibious/base_link")

                def told(message=message, stamp=stamp, number=number):
                    if rig.counter("clouds") == number and rig.value("waiting_clouds") == "0":
                        rig.clouds.publish(message)
                    for later in (-(10**8), 0, 10**8):
                        rig.odometry.publish(pose_east(60.0 * number, ns_to_stamp(stamp + later)))
                    return rig.counter("clouds") > number

                peer.spin_until(told)
            peer.spin_until(lambda: rig.maps and rig.voxels)
            assert rig.counter("dropped_voxels") > 1_000_000
            assert memory(node, "VmHWM") - idle < 80e6
        finally:
            peer.close()


def pose_east(x, stamp):
    from nav_msgs.msg import Odometry

    message = Odometry(child_frame_id="amphibious/base_link")
    message.header.frame_id = "map"
    message.header.stamp = stamp
    message.pose.pose.position.x = x
    message.pose.pose.orientation.w = 1.0
    return message
