# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The whole world step by step, without ROS: poses in, contacts out, worked out by hand."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from rfly_collision.shapes.shape import ConvexHull
from rfly_collision.shapes.vehicle_shapes import load_shapes
from rfly_collision.world.collision_world import (
    MAX_SHAPES,
    CollisionWorld,
    within_limits,
)
from rfly_collision.world.contact_tracker import BEGIN, END, GROUND, STATIC, STAY
from rfly_collision.world.ignore_rules import IgnoreRules
from rfly_collision.world.placed_bodies import PlacedBodies
from rfly_common.errors import ConfigError, CrowdError, PlacementError
from rfly_common.frames import euler_to_quat
from rfly_common.vehicle_states import VehicleStates
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.world.moving import MovingPath

MS = 1_000_000
BOX = 999
CAR = 50
QUAD = 3
SHAPES = load_shapes()


def flat(height=0.0, slope=0.0):
    """Return 200 m x 200 m of ground around the origin, rising by `slope` to the east."""
    axis = np.linspace(-100.0, 100.0, 21)
    heights = height + slope * np.repeat(axis[:, None], 21, axis=1)
    return HeightMap(
        heights, origin_x=-100.0, origin_y=-100.0, step_x=10.0, step_y=10.0, name="flat"
    )


def states(*vehicles, **fields):
    """Return VehicleStates of (id, type, position) that look east."""
    ids, types, positions = (list(column) for column in zip(*vehicles, strict=True))
    n = len(ids)
    euler = fields.pop("euler", np.zeros((n, 3)))
    return VehicleStates(
        np.array(ids),
        np.array(types),
        np.array(positions, float),
        euler_to_quat(np.array(euler, float)),
        **fields,
    )


def objects(*placed):
    """Return PlacedBodies of (id, box middle, half extent), or (id, position, None) of type 50."""
    n = len(placed)
    half = np.array([(0, 0, 0) if each[2] is None else each[2] for each in placed], float).reshape(
        n, 3
    )
    place = np.array([each[1] for each in placed], float).reshape(n, 3)
    ids = np.array([each[0] for each in placed], np.int64)

    return PlacedBodies(
        ids,
        np.full(n, CAR),
        place,
        np.tile([0.0, 0, 0, 1], (n, 1)),
        np.ones((n, 3)),
        place.copy(),
        half,
    )


@pytest.mark.parametrize("target", [150, 151, 152])
@pytest.mark.parametrize("is_placed", [True, False])
def test_targets_are_flown_through_and_touched_at_their_frame(target, is_placed):
    """A quadcopter flies along x through the middle; 0.9 m to its side or above it touches a bar.

    Its shape is 1.1 m wide and 0.32 m high, around z -0.04, in openings of at least 1.34 m.
    """
    gate = (2, target, (0.0, 0.0, 10.0))
    touched = {}
    for y, z in ((0.0, 0.0), (0.0, 0.95), (0.9, 0.0), (3.0, 0.0)):
        world = CollisionWorld(SHAPES)
        placed = [] if is_placed else [gate]
        if is_placed:
            world.set_objects(
                dataclasses.replace(objects((2, gate[2], None)), vehicle_type=np.array([target]))
            )
        for step in range(2):
            there = (1, QUAD, (8.0 * step - 4.0, y, 10.0 + z))
            world.update(states(there, *placed), step * 100 * MS, 0)
            result = world.step()
        touched[y, z] = len(result.events.contacts)

    assert touched == {(0.0, 0.0): 0, (0.0, 0.95): 1, (0.9, 0.0): 1, (3.0, 0.0): 0}


def test_a_target_that_is_driven_into_is_held_and_left():
    """The contact begins at the bar of a ring, stays within the clearance, and ends away from it.

    The ring's bar begins 0.8 m from its middle; the quadcopter reaches 0.55 m to the side.
    """
    world = World()
    ring = dataclasses.replace(objects((2, (0.0, 0.0, 10.0), None)), vehicle_type=np.array([150]))
    world.set_objects(ring)
    found = [world.see((1, QUAD, (0.0, y, 10.0))) for y in (0.0, 0.3, 0.26, 0.0)]
    assert [[event for event, *_ in step] for step in found][:2] == [[], [BEGIN]]
    assert END in [event for step in found[2:] for event, *_ in step]


def test_what_moves_is_touched_where_it_is_by_then():
    """A column of 1 m crosses the origin at 2 m/s: 8 m from it at 6 s, in the origin at 10 s."""
    column = np.array([(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (0.0, 2.0)])
    placed = dataclasses.replace(
        objects((1001, (-20.0, 0.0, 0.0), (0.5, 0.5, 1.0))),
        hulls=(ConvexHull(column),), hull=np.zeros(1, np.int64),
        paths=(MovingPath(np.array([(-20.0, 0.0, 0.0), (20.0, 0.0, 0.0)]), 2.0),),
    )  # fmt: skip

    world = CollisionWorld(SHAPES)
    world.set_objects(placed)

    touched = []
    for seconds in (6.0, 10.0, 14.0):
        world.update(states((7, BOX, (0.0, 0.0, 1.0))), round(seconds * 1e9), 0)
        step = world.step()
        touched.append(
            [(o, e) for o, e in zip(step.events.contacts.object_id, step.events.event, strict=True)]
        )

    expected = [[], [(1001, BEGIN)], [(1001, END)]]
    assert touched == expected


class World(CollisionWorld):
    """A world stepped at 50 Hz, with contacts as tuples."""

    def __init__(self, *rules, **options):
        super().__init__(SHAPES, IgnoreRules(rules), **options)
        self.now_ms = 0

    def see(self, *vehicles, ms=20, **fields):
        """Step `ms` later and return [(event, vehicle, other, object)]."""
        self.now_ms += ms
        if vehicles:
            self.update(
                states(*vehicles, **fields),
                self.now_ms * MS,
                self.now_ms * MS,
            )
        return self.event_rows()

    def event_rows(self):
        step = self.step()
        if step is None:
            return None
        assert step.stamp_ns == self.now_ms * MS
        self.last = step.events.contacts
        rows = zip(
            step.events.event,
            self.last.vehicle,
            self.last.other,
            self.last.object_id,
            strict=True,
        )
        return [tuple(value.item() for value in row) for row in rows]


def test_two_vehicles_crash_and_part():
    """Two boxes of 1 m overlap by 0.1 m when one, from the west, is at x = -0.9.

    The normal points from 8 to 3.
    """
    world = World()
    assert world.see((8, BOX, (0, 0, 50)), (3, BOX, (-1.2, 0, 50))) == []
    assert world.see((3, BOX, (-0.9, 0, 50))) == [(BEGIN, 3, 8, 0)]
    assert world.last.normal[0] == pytest.approx([-1, 0, 0])
    assert world.last.depth[0] == pytest.approx(0.1)
    assert world.last.position[0, 0] == pytest.approx(-0.45)
    assert world.last.time[0] == pytest.approx(0.02 * 2 / 3, abs=1e-6)  # 0.2 of 0.3 m in 20 ms
    assert world.see((3, BOX, (-0.8, 0, 50)), (8, BOX, (0, 0, 50))) == [(STAY, 3, 8, 0)]
    assert world.last.time[0] == 0
    assert world.see((3, BOX, (-1.5, 0, 50))) == [(END, 3, 8, 0)]
    assert world.last.depth[0] == pytest.approx(0.2)
    assert world.step() is None


def test_a_bullet_does_not_pass_through():
    """A bullet at 500 m/s is 10 m away from the other at both ends of a step of 40 ms."""
    world = World()
    world.see((1, BOX, (-10, 0, 50)), (2, BOX, (0, 0, 50)))
    assert world.see((1, BOX, (10, 0, 50)), ms=40) == [(BEGIN, 1, 2, 0)]
    assert world.last.time[0] == pytest.approx(9 / 500, abs=1e-6)
    assert world.last.normal[0] == pytest.approx([-1, 0, 0])
    assert world.see((1, BOX, (30, 0, 50)), ms=40) == [(END, 1, 2, 0)]


def test_one_that_was_put_elsewhere_crosses_nothing():
    """A jump of 200 m in 20 ms, 10,000 m/s, is a restart and not a flight.

    A stamp that has not moved is a restart, too.
    """
    world = World()
    world.see((1, BOX, (-100, 0, 50)), (2, BOX, (0, 0, 50)))
    assert world.see((1, BOX, (100, 0, 50))) == []
    assert world.see((1, BOX, (-10, 0, 50)), ms=0) == []


def test_states_of_several_sources_are_swept_each_from_where_it_was_tested():
    """States of several sources are swept from where each was last tested.

    The first comes every 20 ms, the second every 40 ms and stands still in between.
    """
    world = World()
    world.see((1, BOX, (0, 0, 50)), (2, BOX, (20, 0, 50)))
    assert world.see((1, BOX, (1, 0, 50))) == []
    assert world.see((2, BOX, (-10, 0, 50)), (1, BOX, (1, 0.2, 50))) == [(BEGIN, 1, 2, 0)]


def test_a_turning_vehicle_sweeps_what_it_turns_through():
    """A car of 4.3 m that turns from east to north in one step touches a box on the way.

    The box is 1.7 m north-east of its middle; the car touches it neither before nor after.
    """
    world = World()
    post = (2, BOX, (1.8, 1.8, 50.8))
    assert world.see((1, CAR, (0, 0, 50)), post) == []
    assert world.see((1, CAR, (0, 0, 50)), euler=[(0, 0, math.pi / 2)]) == [(BEGIN, 1, 2, 0)]
    assert World().see((1, CAR, (0, 0, 50)), post, euler=[(0, 0, math.pi / 2), (0, 0, 0)]) == []


def test_a_replay_that_begins_again_collides_again():
    """Contacts carry the stamps of the second pass, and nothing is swept between the passes."""
    world = World()
    for _ in range(2):
        seen = []
        for k, x in enumerate((-20.0, 0.3, 20.0)):
            both = states((1, BOX, (x, 0, 50)), (2, BOX, (0, 0, 50)))
            world.update(both, (100 + k) * 1000 * MS, 0)
            step = world.step()
            seen.append((step.stamp_ns // (1000 * MS), step.events.event.tolist()))
        assert seen == [(100, []), (101, [BEGIN]), (102, [END])]


def test_silent_vehicles_are_gone_with_their_contacts():
    world = World()
    world.see((1, BOX, (0, 0, 50)), (2, BOX, (0.5, 0, 50)))
    world.see((1, BOX, (0, 0, 50)), ms=900)
    world.drop_stale(1020 * MS)  # 2 was heard at 20 ms, not more than 1 s ago
    assert world.event_rows() is None
    world.drop_stale(1021 * MS)
    assert world.event_rows() == [(END, 1, 2, 0)]
    assert world.vehicles == 1


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        ("1,2", [(1, 3), (2, 3)]),
        ("2,1", [(1, 3), (2, 3)]),
        ("1-2, 3", [(1, 2)]),
        ("type:3,*", [(1, 2)]),
        ("type:50,type:50", [(1, 3), (2, 3)]),
        ("1,ground", [(1, 2), (1, 3), (2, 3)]),
        ("*,*", []),
    ],
)
def test_ignored_pairs_never_count(rule, kept):
    """Two cars, one of another variant, and a multirotor overlap, but their pairs are ignored."""
    world = World(rule)
    found = world.see(
        (1, CAR, (0, 0, 50)),
        (2, 100150, (0.5, 0, 50)),
        (3, QUAD, (0, 0, 50.5)),
    )
    if rule == "type:50,type:50":  # 150 is a class of its own
        kept = [(1, 2), *kept]
    assert [row[1:3] for row in found] == kept


def test_rules_for_ground_and_objects():
    world = World("1,ground", "2,static", "3,object:7-8")
    world.set_terrain(flat())
    world.set_objects(objects((6, (0, 0, 0), (50, 50, 0.1)), (7, (0, 0, 0), (50, 50, 0.1))))
    found = world.see(
        (1, BOX, (0, 0, 0)),
        (2, BOX, (10, 0, 0)),
        (3, BOX, (20, 0, 0)),
    )
    assert [row[1:] for row in found] == [
        (1, STATIC, 6), (1, STATIC, 7), (2, GROUND, 0), (3, GROUND, 0), (3, STATIC, 6),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        ("1", "ignore: '1' has 1 sides, expected an id or range"),
        ("1,2,3", "has 3 sides"),
        ("1,car", "ignore: 'car' in '1,car', expected an id"),
        ("5-3,1", "ignore: '5-3' in '5-3,1', expected numbers that rise"),
        ("1,9999999999", "expected numbers that rise"),
        ("type:-1,2", "'type:-1' in"),
    ],
)
def test_wrong_rules_are_named(rule, error):
    with pytest.raises(ConfigError, match=error):
        IgnoreRules([rule])


def test_placed_objects_by_their_box_or_by_their_type():
    """A box of 2 x 2 x 4 m and a car without a size are placed.

    The objects overlap each other, which never counts.
    """
    world = World()
    world.set_objects(objects((1001, (0, 0, 2), (1, 1, 2)), (1002, (0, 2, 0), None)))
    assert world.see((5, BOX, (1.4, 0, 3))) == [(BEGIN, 5, STATIC, 1001)]
    assert world.last.normal[0] == pytest.approx([1, 0, 0])
    assert world.last.depth[0] == pytest.approx(0.1)
    found = world.see((5, BOX, (2.4, 2, 0.8)), (6, BOX, (0, 50, 0)))
    expected = [(END, 5, STATIC, 1001), (BEGIN, 5, STATIC, 1002)]
    assert found == expected
    world.set_objects(objects())
    assert world.event_rows() == [(END, 5, STATIC, 1002)]


def test_clearance_holds_contacts_with_objects():
    """A box on a table of 1 m still touches it at 1.9 mm, but not at 2.1 mm.

    Two vehicles part at once.
    """
    world = World()
    world.set_objects(objects((9, (30, 0, 0.5), (1, 1, 0.5)), (1001, (0, 0, 0.5), (1, 1, 0.5))))
    at = lambda z: (5, BOX, (0.3, 0, 1.5 + z))  # noqa: E731
    assert world.see(at(-0.001)) == [(BEGIN, 5, STATIC, 1001)]
    assert world.see(at(0.0019)) == [(STAY, 5, STATIC, 1001)]
    assert world.last.depth.tolist() == [0]
    assert world.see(at(0.0021)) == [(END, 5, STATIC, 1001)]
    assert world.see((7, BOX, (50, 0, 50)), (8, BOX, (50.999, 0, 50))) == [(BEGIN, 7, 8, 0)]
    assert world.see((7, BOX, (50, 0, 50)), (8, BOX, (51.001, 0, 50))) == [(END, 7, 8, 0)]


def test_clearance_holds_for_a_tenth_of_a_second():
    world = World()
    world.set_objects(objects((1001, (0, 0, 0.5), (1, 1, 0.5))))
    world.see((5, BOX, (0, 0, 1.499)))
    hovering = (5, BOX, (0, 0, 1.501))
    assert [world.see(hovering)[0][0] for _ in range(5)] == [STAY] * 4 + [END]


def test_landing_and_standing_on_the_ground():
    """A multirotor stands 0.2 m below its origin.

    It touches the ground there; the contact lasts up to 1 mm above.
    """
    world = World()
    world.set_terrain(flat(10.0))
    assert world.see((1, QUAD, (3, 4, 10.3))) == []
    assert world.see((1, QUAD, (3, 4, 10.199))) == [(BEGIN, 1, GROUND, 0)]
    assert world.last.normal[0] == pytest.approx([0, 0, 1])
    assert world.last.depth[0] == pytest.approx(0.001, abs=1e-6)
    assert world.last.position[0, 2] == pytest.approx(10, abs=2e-3)
    assert world.see((1, QUAD, (3, 4, 10.201))) == [(STAY, 1, GROUND, 0)]
    assert world.see((1, QUAD, (3, 4, 10.21))) == [(END, 1, GROUND, 0)]


def test_cars_stand_on_wheels_that_never_count():
    """A car's wheels, 0.2 m of clearance, never count.

    It does not touch the ground at 0.19 m deep, at 0.21 m it does; a scaled one touches later.
    """
    world = World()
    world.set_terrain(flat())
    assert world.see((1, CAR, (0, 0, 0)), (2, CAR, (20, 0, -0.19)), (3, CAR, (40, 0, -0.21))) == [
        (BEGIN, 3, GROUND, 0)
    ]
    assert world.see((3, CAR, (40, 0, -0.39)), scale=[(1, 1, 2)]) == [(END, 3, GROUND, 0)]


def test_fitted_vehicles_are_tested_on_the_ground():
    """A fitted car stands on its wheels along the slope and does not touch the ground.

    The slope is 0.5, the car is sent level and 5 m up. It touches a box 1.5 m above its place. A
    car that is not fitted does touch the ground, and a person stays upright.
    """
    world = World()
    world.set_terrain(flat(100.0, slope=0.5))
    fit = np.array([True, True, False])
    person = (2, 30, (20, 0, -50))
    assert world.see((1, CAR, (0, 0, 105)), person, (3, CAR, (40, 0, 120.5)), fit_ground=fit) == [
        (BEGIN, 3, GROUND, 0)
    ]
    assert (BEGIN, 1, 4, 0) in world.see((4, BOX, (0, 0, 101.5)))
    assert (END, 1, 4, 0) in world.see((4, BOX, (0, 0, 105)))


def test_outside_the_map_the_edge_goes_on_or_nothing():
    deep = (1, BOX, (500, 0, -5))
    for outside, expected in (("extend", [(BEGIN, 1, GROUND, 0)]), ("void", [])):
        world = World(outside=outside)
        world.set_terrain(flat())
        assert world.see(deep) == expected


def test_another_terrain_is_tested_at_once():
    world = World()
    world.set_terrain(flat())
    assert world.see((1, BOX, (0, 0, 5))) == []
    world.set_terrain(flat(10.0))
    assert world.event_rows() == [(BEGIN, 1, GROUND, 0)]


def test_a_check_moves_nothing():
    """Hypothetical poses meet each other, present vehicles, objects and ground.

    The world itself does not change.
    """
    world = World()
    world.set_terrain(flat())
    world.set_objects(objects((1001, (30, 0, 0), (1, 1, 1))))
    world.see(
        (1, BOX, (0, 0, 50)),
        (2, BOX, (0.5, 0, 50)),
        (3, BOX, (10, 0, 0.2)),
    )

    found = world.check(
        states((3, BOX, (30, 0, 0.5)), (4, BOX, (0, 0.5, 50)), (9, BOX, (30.5, 0, 0.5)))
    )

    rows = zip(
        found.vehicle.tolist(),
        found.other.tolist(),
        found.object_id.tolist(),
        strict=True,
    )

    assert list(rows) == [
        (1, 4, 0),
        (2, 4, 0),
        (3, GROUND, 0),
        (3, 9, 0),
        (3, STATIC, 1001),
        (9, GROUND, 0),
        (9, STATIC, 1001),
    ]

    # the world is as it was
    assert found.time.tolist() == [0] * 7
    expected = [(STAY, 1, 2, 0), (STAY, 3, GROUND, 0)]
    assert world.see((1, BOX, (0, 0, 50))) == expected
    assert world.vehicles == 3


def test_in_a_crowd_only_the_ground_is_tested():
    """Five boxes in one place are ten pairs, too many; without one of them, six are tested."""
    world = World(max_pairs=9)
    world.set_terrain(flat())

    five = [(i, BOX, (0, 0, 0.1 * i)) for i in range(1, 6)]
    expected = [(BEGIN, i, GROUND, 0) for i in range(1, 6)]
    assert world.see(*five) == expected

    assert world.crowd.startswith(
        "only the ground is tested: the boxes of more than 9 pairs of bodies overlap"
    )
    with pytest.raises(CrowdError, match="more than 9 pairs"):
        world.check(states(*five))

    # one leaves the crowd
    found = world.see((5, BOX, (50, 0, 50)))
    expected = [
        (1, 2),
        (1, 3),
        (1, 4),
        (2, 3),
        (2, 4),
        (3, 4),
    ]
    assert [row[1:3] for row in found if row[0] == BEGIN] == expected

    assert world.crowd == ""


def test_a_crowd_in_one_place_is_given_up_after_the_allowed_number_of_pairs():
    """The crowd has five thousand million pairs, which once took more than a minute a step.

    The second step is as quick, though all of them had touched.
    """
    n = 100_000
    crowd = VehicleStates(
        id=np.arange(1, n + 1),
        vehicle_type=np.full(n, BOX),
        position=np.tile([0.0, 0.0, 0.2], (n, 1)),
        orientation=np.tile([0.0, 0.0, 0.0, 1.0], (n, 1)),
    )

    world = CollisionWorld(SHAPES, max_vehicles=n)
    world.set_terrain(flat())

    for attempt in range(2):
        world.update(crowd, attempt * 20_000_000, attempt)
        step = world.step()
        assert world.crowd.startswith("only the ground is tested")

    assert np.count_nonzero(step.events.contacts.other == GROUND) == len(step.events) == n

    with pytest.raises(CrowdError, match="more than 50,000 pairs"):
        world.check(crowd)


def test_contacts_of_a_crowd_that_is_lost_are_tested_one_by_one():
    """Three hundred overlapping vehicles part, and each pair ends as two vehicles would.

    Their contacts are tested one by one.
    """
    n = 300
    world = World()
    world.see(*((i, BOX, (0, 0, 50)) for i in range(1, n + 1)))
    found = world.see(*((i, BOX, (20.0 * i, 0, 50)) for i in range(1, n + 1)))
    assert len(found) == n * (n - 1) // 2
    assert {row[0] for row in found} == {END}


def test_vehicles_and_shapes_beyond_the_limits_are_counted():
    world = CollisionWorld(SHAPES, max_vehicles=4)

    # the fifth finds no room
    given = states(*((i, BOX, (10.0 * i, 0, 50)) for i in (7, 3, 9, 1, 5)))
    assert world.update(given, 1, 1) == 1
    assert world.vehicles == 4
    assert world.update(given, 2, 2) == 1  # those that are known stay, the fifth finds no room

    # more scales than shapes
    many = CollisionWorld(SHAPES)
    n = MAX_SHAPES + 3
    given = states(*((i, BOX, (10.0 * i, 0, 50)) for i in range(1, n + 1)))
    given.scale[:] = np.linspace(1.0, 2.0, n)[:, None]
    many.update(given, 1, 1)
    many.step()
    assert many.unscaled == 3

    # more sizes of objects than shapes
    boxes = PlacedBodies(
        np.arange(n),
        np.full(n, BOX),
        np.zeros((n, 3)),
        np.tile([0.0, 0.0, 0.0, 1.0], (n, 1)),
        np.ones((n, 3)),
        np.zeros((n, 3)),
        np.linspace(1.0, 2.0, 3 * n).reshape(n, 3),
    )

    with pytest.raises(PlacementError, match=r"2,003 different sizes, at most 2,000"):
        many.set_objects(boxes)


def test_a_restart_ends_all_contacts_and_sweeps_nothing():
    world = World()
    world.see(
        (1, BOX, (-9, 0, 50)),
        (2, BOX, (0, 0, 50)),
        (3, BOX, (0.5, 0, 50)),
    )
    ended = world.reset().events
    assert (ended.contacts.vehicle.tolist(), ended.event.tolist()) == ([2], [END])
    world.now_ms = 0
    assert world.see((1, BOX, (9, 0, 50)), ms=20) == [(BEGIN, 2, 3, 0)]


def test_types_without_a_shape_are_reported():
    world = World()
    world.see(
        (1, BOX, (0, 0, 50)),
        (2, CAR, (9, 0, 50)),
        (3, 777, (20, 0, 50)),
    )
    assert world.default_types == {777, BOX}


def test_what_cannot_be_tested_is_counted():
    given = states(
        (1, 3, (0, 0, 0)),
        (0, 3, (0, 0, 0)),
        (-2, 3, (0, 0, 0)),
        (4, 3, (0, 0, 0)),
        (5, 3, (1e7, 0, 0)),
    )
    given.scale[3] = (1, 0, 1)
    good, reasons = within_limits(given)
    assert good.tolist() == [True, False, False, False, False]
    assert reasons == {"bad_id": 2, "bad_scale": 1, "too_far": 1}


def two_parts(identity, position, gap):
    """Return an object of two cubes of 2 m along x, as two bodies of one id.

    `gap` m lie between their middles.
    """
    cube = np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
    hulls = (ConvexHull(cube, (-gap / 2, 0, 0)), ConvexHull(cube, (gap / 2, 0, 0)))
    one = PlacedBodies(
        np.array([identity]),
        np.array([CAR]),
        np.array([position], float),
        np.array([[0.0, 0.0, 0.0, 1.0]]),
        np.ones((1, 3)),
        np.array([position], float),
        np.array([(9.0, 9.0, 9.0)]),
    )
    return one.rows(np.array([0, 0]), hulls, np.array([0, 1]))


def test_an_object_of_several_parts_is_one():
    """An object of several parts has one contact, with its deepest part.

    There is none in its box but outside its parts.
    """
    world = World()
    world.set_objects(two_parts(2001, (0.0, 0.0, 50.0), 3.0))

    assert world.objects == 1

    # its 1 m cube reaches 0.2 m in
    assert world.see((1, BOX, (-2.8, 0, 50))) == [(BEGIN, 1, -1, 2001)]

    # both parts, 0 m deep in the gap of 1 m
    assert world.see((1, BOX, (0.0, 0, 50))) == [(STAY, 1, -1, 2001)]

    assert world.see((1, BOX, (0.3, 0, 50))) == [(STAY, 1, -1, 2001)]
    assert world.last.depth[0] == pytest.approx(0.3)
    assert world.last.normal[0] == pytest.approx([-1, 0, 0])

    for ms in (20, 200):
        world.see((1, BOX, (0.0, 0, 60)), ms=ms)
    assert world.active.vehicle.tolist() == []

    # within the box of 18 m around the parts
    assert world.see((1, BOX, (0.0, 3.0, 50)), ms=400) == []
    assert world.default_types == {BOX}


def test_a_contact_is_held_by_the_second_part_too():
    """A contact 1 mm off the far part lasts a tenth of a second.

    Farther off it ends at once.
    """
    world = World()
    world.set_objects(two_parts(2001, (0.0, 0.0, 50.0), 3.0))
    assert world.see((1, BOX, (2.9, 0, 50))) == [(BEGIN, 1, -1, 2001)]
    assert world.see((1, BOX, (3.001, 0, 50))) == [(STAY, 1, -1, 2001)]
    assert world.see((1, BOX, (3.1, 0, 50))) == [(2, 1, -1, 2001)]
