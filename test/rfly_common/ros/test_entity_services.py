# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Differences between versions 1 and 2.1 of simulation_interfaces, and name filters. No graph."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

pytestmark = pytest.mark.ros

AT_REST = [
    np.zeros(3),
    np.array([0.0, 0.0, 0.0, 1.0]),
    *np.zeros((4, 3)),
]


class OneEntity:
    """An entity that records its requests."""

    def __init__(self):
        from rfly_common.ros.entity_services import ROBOT, Entity

        self.put_there = []
        self._entity = Entity("car", ROBOT, "", (), -np.ones(3), np.ones(3))

    def entities(self):
        return [self._entity]

    def motions(self, indices):
        from rfly_common.ros.entity_services import EntityMotion

        return 0, [EntityMotion(*AT_REST) for _ in indices]

    def put(self, index, pose, twist):
        self.put_there.append((pose, twist))


@pytest.fixture
def services():
    """The callbacks by the names of their services, and the entity that they act on."""
    from rfly_common.ros.entity_services import EntityServices

    callbacks = {}
    entity = OneEntity()
    node = SimpleNamespace(
        create_service=lambda _, name, callback: callbacks.update({name: callback})
    )
    EntityServices(node, entity, {"map_ned": "ned"}.get)
    return callbacks, entity


@pytest.mark.parametrize(
    ("flags", "pose", "twist"),
    [
        pytest.param({}, True, True, id="version 1 sets both"),
        pytest.param({"set_pose": True, "set_twist": False}, True, False, id="2.1, the pose"),
        pytest.param(
            {"set_pose": False, "set_twist": True, "set_acceleration": True},
            False,
            True,
            id="2.1, a twist",
        ),
    ],
)
def test_only_what_the_flags_say_is_set(services, flags, pose, twist):
    """North 1, east 2, down 3 at 4 m/s north, in `map_ned`: x 2, y 1, z -3, and 4 m/s along y."""
    from simulation_interfaces.msg import EntityState
    from simulation_interfaces.srv import SetEntityState

    callbacks, entity = services
    state = EntityState()
    state.header.frame_id = "map_ned"
    state.pose.position.x = 1.0
    state.pose.position.y = 2.0
    state.pose.position.z = 3.0
    state.twist.linear.x = 4.0
    request = SimpleNamespace(entity="car", state=state, **flags)
    response = callbacks["~/set_entity_state"](request, SetEntityState.Response())
    assert response.result.result == 1
    ((was_pose, was_twist),) = entity.put_there
    assert (was_pose is not None, was_twist is not None) == (pose, twist)
    if pose:
        assert was_pose.position.tolist() == [2.0, 1.0, -3.0]
    if twist:
        assert was_twist.linear.tolist() == [0.0, 4.0, 0.0]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("", ["car_1", "car_12", "city/car_1", "Boat"]),
        ("car", ["car_1", "car_12", "city/car_1"]),
        ("^car_[[:digit:]]$", ["car_1"]),
        ("^(car|city)", ["car_1", "car_12", "city/car_1"]),
        ("[A-Z]", ["Boat"]),
        ("_1{1}2?$", ["car_1", "car_12", "city/car_1"]),
    ],
)
def test_names_are_found_by_posix_extended_expressions(pattern, found):
    from rfly_common.ros.entity_services import name_filter

    has = name_filter(pattern)
    assert [name for name in ("car_1", "car_12", "city/car_1", "Boat") if has(name)] == found


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "a" * 201,
        "(a+)" * 9,
        "a{256}",
        "(a{2}){2}{2}",
        r"(a)\1",
        "a\0b",
        "[[:nothing:]]",
        "*(" * 50,
    ],
)
def test_expressions_that_are_none_or_would_take_long_are_refused(pattern):
    from rfly_common.errors import ConfigError
    from rfly_common.ros.entity_services import name_filter

    with pytest.raises(ConfigError, match="filter"):
        name_filter(pattern)


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "((((((((a+)+)+)+)+)+)+)+)b", "(a|aa|aaa)*b", "((a{0,255})+)+b"]
)
def test_no_expression_takes_long(pattern):
    from rfly_common.ros.entity_services import name_filter

    assert not name_filter(pattern)("a" * 100 + "c")  # by backtracking it would never end


def test_an_answer_does_not_repeat_a_megabyte_that_it_was_sent():
    from rfly_common.ros.simulation_services import result

    assert result(102, "name 'a b'").error_message == "name 'a b'"
    text = result(102, f"name {'x' * 1_000_000!r}: expected letters").error_message
    assert (
        len(text),
        text[:10],
        text[-7:],
    ) == (1000, "name 'xxxx", "letters")


def test_states_of_none_while_there_is_no_ground(services):
    from simulation_interfaces.srv import GetEntitiesStates

    callbacks, entity = services
    entity.entities = lambda: None
    entity.motions = None
    answer = callbacks["~/get_entities_states"](
        GetEntitiesStates.Request(), GetEntitiesStates.Response()
    )
    assert (answer.result.result, list(answer.states)) == (3, [])
