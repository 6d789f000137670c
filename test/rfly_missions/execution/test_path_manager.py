# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The mission state machine: worked scenarios, bad input, random runs beside plain rules."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from path_manager_scenarios import NAMES, SCENARIOS

from rfly_missions import MissionCommand, MissionItem, MissionMode, PathManager, UAVPathManagerBus
from rfly_missions.execution.path_manager import MissionPhase
from rfly_missions.mission.items import bus_type


def number(text):
    """Return a number of a scenario, such as 0.25pi."""
    return float(text.removesuffix("pi") or 1) * math.pi if text.endswith("pi") else float(text)


def item(text):
    """Return an item of a scenario, by its name or its text."""
    mode, position, params = re.split("[@/]", NAMES.get(text, text))
    return MissionItem(
        int(mode), [*map(number, position.split(","))], [*map(number, params.split(","))]
    )


def inputs(text, mission):
    """Return the keyword arguments of a step."""
    values = {"pose": (0.0, 0.0, 0.0, 0.0), "mission": mission}

    new_mission = re.search(r"mission=\[(.*)\]", text)
    if new_mission:
        values["mission"] = [item(name) for name in new_mission[1].split()]
        text = text.replace(new_mission[0], "")

    for word in text.split():
        key, _, value = word.partition("=")
        if key == "done":
            values["is_mode_done"] = True
        elif key == "cmd":
            values["command"] = int(value)
        else:
            assert key in ("pose", "home")
            values[key] = [float(part) for part in value.split(",")]
    return values


def manager(uav):
    """Return a path manager of a scenario's vehicle."""
    return (
        PathManager()
        if uav == "MR"
        else PathManager("fixed-wing", loiter_radius=float(uav.split()[1]))
    )


def assert_item(actual, expected, where):
    assert actual.mode == expected.mode, where
    np.testing.assert_allclose(actual.position, expected.position, atol=1e-6, err_msg=where)
    np.testing.assert_allclose(actual.params, expected.params, atol=1e-6, err_msg=where)


@pytest.mark.parametrize(("uav", "mission", "steps"), SCENARIOS.values(), ids=SCENARIOS)
def test_scenario(uav, mission, steps):
    items = [item(name) for name in mission.split()]
    path_manager = manager(uav)
    for index, step in enumerate(steps):
        inputs_text, expected = step.split("->")
        current, previous = (item(text.strip()) for text in expected.split(";"))
        actual = path_manager.step(**inputs(inputs_text, items))
        assert_item(actual.current, current, f"step {index}: {step}: current")
        assert_item(actual.previous, previous, f"step {index}: {step}: previous")


BAD = {
    "mode": lambda: [MissionItem(0, (0, 0, 0), (0, 0, 0, 0))],
    "HOLD": lambda: [MissionItem(MissionMode.HOLD, (0, 0, 0), (0, 0, 0, 0))],
    "position": lambda: [MissionItem.waypoint((1.0, 2.0))],
    "finite": lambda: [MissionItem.waypoint((1.0, math.nan, 2.0))],
    "params": lambda: [MissionItem.takeoff((0, 0, 0), (1, 2))],
    "expected one of": lambda: [MissionItem(8, (0, 0, 0), (0, 0, 0, 0))],
    "MissionItem": lambda: ["land"],
}
T = item("T")
A = item("A")
B = item("B")


@pytest.mark.parametrize(("text", "mission"), BAD.items())
def test_a_bad_mission_is_named_and_changes_nothing(text, mission):
    path_manager = PathManager()
    untouched = PathManager()
    for each in (path_manager, untouched):
        each.step((0, 0, 0, 0), [T, A])

    with pytest.raises(ValueError, match=text):
        path_manager.step((1, 1, 1, 1), mission(), is_mode_done=True)
    after = [
        each.step((5, 0, -9, 0), [T, A], is_mode_done=True) for each in (path_manager, untouched)
    ]
    assert after[0] == after[1] == (A, MissionItem.takeoff((0, 0, -10), (0, 25, 0, 0)))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("command", {"command": 4}),
        ("pose", {"pose": (0, 0, 0)}),
        ("pose", {"pose": (0, 0, math.inf, 0)}),
        ("home", {"home": (0, 0)}),
        ("home", {"home": (0, math.nan, 0)}),
        ("is_mode_done", {"is_mode_done": "yes"}),
    ],
)
def test_a_bad_input_is_named_and_changes_nothing(name, wrong):
    path_manager = PathManager()
    path_manager.step((0, 0, 0, 0), [T, A])
    with pytest.raises(ValueError, match=name):
        path_manager.step(
            **{"pose": (0, 0, 0, 0), "mission": [T, A], "is_mode_done": True, **wrong}
        )
    assert path_manager.step((0, 0, 0, 0), [T, A]).current == T


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("uav_type", {"uav_type": "plane"}),
        ("loiter_radius", {"loiter_radius": 0}),
        ("loiter_radius", {"loiter_radius": math.inf}),
        ("hold_turn_direction", {"hold_turn_direction": 2}),
    ],
)
def test_a_bad_argument_is_named(name, arguments):
    with pytest.raises(ValueError, match=name):
        PathManager(**arguments)


def test_the_fixed_wing_hold_turns_as_requested():
    held = (
        PathManager("fixed-wing", 60.0, -1)
        .step((1, 2, -30, 0), [T], command=MissionCommand.HOLD)
        .current
    )
    assert held == MissionItem(MissionMode.HOLD, (1, 2, -30), (60, -1, -1, -1))


def test_an_equal_mission_sent_again_is_no_change_and_another_is():
    path_manager = PathManager()
    nan = math.nan

    def mission(yaw):
        return [
            MissionItem.takeoff((0, 0, -10), (0, 0, 0, nan)),
            MissionItem.waypoint((1, 2, -3), yaw),
        ]

    path_manager.step((0, 0, 0, 0), mission(nan))
    path_manager.step((0, 0, 0, 0), mission(nan), is_mode_done=True)
    assert path_manager.index == 1
    assert path_manager.step((0, 0, 0, 0), mission(nan)).current.mode is MissionMode.WAYPOINT
    assert path_manager.step((0, 0, 0, 0), mission(1.0)).current.mode is MissionMode.TAKEOFF


def test_a_mission_changed_in_place_is_noticed():
    path_manager = PathManager()
    mission = [T, A]
    path_manager.step((0, 0, 0, 0), mission)
    path_manager.step((0, 0, 0, 0), mission, is_mode_done=True)
    mission.append(B)
    assert path_manager.step((0, 0, 0, 0), mission).current == T


def test_what_feedback_shows():
    path_manager = PathManager()
    assert (path_manager.index, path_manager.finished) == (0, False)
    for done, index, finished in ((False, 0, False), (True, 1, False), (True, 1, True)):
        path_manager.step((0, 0, 0, 0), [T, A], is_mode_done=done)
        assert (path_manager.index, path_manager.finished) == (index, finished)

    path_manager.reset()
    assert (path_manager.index, path_manager.finished) == (0, False)
    assert path_manager.step((7, 0, 0, 0), [T]).previous.position.tolist() == [7, 0, 0]


def test_starting_over_is_a_new_pass_of_an_equal_mission():
    path_manager = PathManager()
    mission = (A, B)
    for done in (False, True):
        path_manager.step((0, 0, 0, 0), mission, done)

    switches = path_manager.state.switches
    path_manager.start_at(0)
    assert path_manager.step((0, 0, 0, 0), mission, is_mode_done=True) == (A, B)
    assert path_manager.state.switches == switches + 1
    assert path_manager.state.phase is MissionPhase.FLYING

    path_manager.step((0, 0, 0, 0), mission, command=MissionCommand.HOLD)
    assert path_manager.state.phase is MissionPhase.HOLDING


@pytest.mark.parametrize("command", MissionCommand)
def test_an_interruption_remembers_whether_the_mission_is_finished(command):
    """Only an item that is flown can be done, so a hold or return ignores the report."""
    path_manager = PathManager()
    mission = (A, B)
    interrupts = command in (MissionCommand.HOLD, MissionCommand.RTL)
    path_manager.step((0, 0, 0, 0), mission, command=command)
    path_manager.step((0, 0, 0, 0), mission, is_mode_done=True, command=command)
    assert (path_manager.index, path_manager.finished) == (0 if interrupts else 1, False)

    # finished, and finished again with an empty mission
    path_manager.start_at(1)
    for done in (False, True):
        path_manager.step((0, 0, 0, 0), mission, done)
    assert path_manager.finished
    path_manager.step((0, 0, 0, 0), mission, command=command)
    assert path_manager.finished is (command is not MissionCommand.REPEAT)
    path_manager.step((0, 0, 0, 0), (), command=command)
    assert path_manager.finished


def test_items_are_copied_read_only_and_equal_by_value():
    position = np.array([1.0, 2.0, 3.0])
    waypoint = MissionItem.waypoint(position, yaw=math.nan)
    position[0] = 9.0
    assert waypoint.position.tolist() == [1.0, 2.0, 3.0]

    with pytest.raises(ValueError, match="read-only"):
        waypoint.params[0] = 1.0

    same = MissionItem(2, [1, 2, 3], [math.nan, 0, 0, 0])
    assert waypoint == same
    assert len({waypoint, same}) == 1
    assert waypoint != MissionItem.waypoint((1, 2, 3), yaw=0.0)
    assert waypoint != "waypoint"
    assert repr(waypoint) == "MissionItem(WAYPOINT, position=(1, 2, 3), params=(nan, 0, 0, 0))"


def test_a_mavlink_command_has_a_field_of_its_own():
    command = MissionItem.mavlink(206, (1, 2, 3), (25, 0, 1, 0))
    own = MissionItem.custom((1, 2, 3), (25, 0, 1, 0))
    assert (command.mode, command.command) == (MissionMode.CUSTOM, 206)
    assert own.command == 0
    assert command != own
    assert len({command, own}) == 2
    assert repr(command).endswith("params=(25, 0, 1, 0), command=206)")

    for number in (-1, 65_536, 1.0, "16"):
        with pytest.raises(ValueError, match=r"command: .*, expected a whole number, 0 to 65,535"):
            MissionItem.mavlink(number, (0, 0, 0))
    with pytest.raises(ValueError, match="command: 16 in WAYPOINT, expected one in CUSTOM only"):
        MissionItem(MissionMode.WAYPOINT, (0, 0, 0), command=16)


def test_the_position_of_a_return_is_never_read():
    back = MissionItem(MissionMode.RTL, (math.nan, 0, 0), (0, 0, 0, 0))
    current = PathManager().step((0, 0, 0, 0), [back], home=(4, 5, 6)).current
    assert current.position.tolist() == [4, 5, 6]


class PlainRules:
    """The item shown by the rules, for way-points and at most one landing at the end."""

    def __init__(self, length, lands):
        self.length = length
        self.lands = lands
        self.index = None
        self.is_finished = False
        self.showed_item = False

    def step(self, done, command):
        # progress
        if self.index is None:
            self.index = 0
        elif done and self.showed_item and not self.is_finished:
            if self.index == self.length - 1:
                self.is_finished = True
            else:
                self.index += 1
        if self.is_finished and command == 2:
            self.index = 0
            self.is_finished = False

        # the command
        shown = "hold" if self.is_finished and not self.lands else self.index
        shown = {1: "hold", 3: "return"}.get(command, shown)
        self.showed_item = not isinstance(shown, str)
        return shown


@given(
    st.integers(1, 4),
    st.booleans(),
    st.lists(st.tuples(st.booleans(), st.sampled_from([0, 0, 0, 1, 2, 3])), max_size=30),
)
def test_any_run_shows_what_the_rules_say(length, lands, steps):
    mission = [MissionItem.waypoint((10.0 * i, 0, -5)) for i in range(length)]
    if lands:
        mission[-1] = MissionItem.land((0, 0, 0))

    path_manager = PathManager()
    rules = PlainRules(length, lands)
    before = None
    for done, command in steps:
        actual = path_manager.step((1, 1, -1, 0), mission, done, command)
        expected = rules.step(done, command)

        if expected == "hold":
            assert actual.current.mode is MissionMode.HOLD
        elif expected == "return":
            assert actual.current.mode is MissionMode.RTL
        else:
            assert actual.current == mission[expected]

        if before is not None and actual.current != before.current:
            assert actual.previous.mode == before.current.mode
            assert np.array_equal(actual.previous.position, before.current.position)
        before = actual


@pytest.mark.parametrize(("data_type", "real"), [("double", np.float64), ("single", np.float32)])
def test_a_mission_as_a_bus_in_single_and_double(data_type, real):
    """The Path Manager block's UAVPathManagerBus is read and written like items of Python."""
    items = [MissionItem.takeoff((0, 0, -10)), MissionItem.waypoint((100.25, 0, -10), 0.5, 5.0)]
    bus = np.array(
        [(item.mode.value, item.position, item.params) for item in items], bus_type(data_type)
    )
    structures = [
        {
            "mode": np.uint8(row["mode"]),
            "position": row["position"][:, None],
            "params": row["params"],
        }
        for row in bus
    ]

    pose = np.array([0.0, 0.0, 0.0, 0.0], real)
    for mission in (bus, bus[:, None].ravel(), structures):
        manager = PathManager()
        plain = PathManager()
        for done in (False, True):
            params = manager.step(pose, mission, done)
            assert params == plain.step((0, 0, 0, 0), items, done)

        out = params.to_bus(data_type)
        assert (out.dtype, out.shape) == (bus_type(data_type), (2,))
        assert out["mode"].tolist() == [2, 1]
        np.testing.assert_array_equal(out["position"], [(100.25, 0, -10), (0, 0, -10)])
        assert out["params"].dtype == real

    assert UAVPathManagerBus.names == ("mode", "position", "params")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (7, "mission item 0: 7, expected a MissionItem, or a structure"),
        (
            {"mode": 2, "position": (0, 0, 0)},
            "mission item 0: .*expected a MissionItem, or a structure",
        ),
        ({"mode": 9, "position": (0, 0, 0), "params": (0, 0, 0, 0)}, "mission item 0: mode: 9"),
        (
            {"mode": 2, "position": (0, 0), "params": (0, 0, 0, 0)},
            "mission item 0: WAYPOINT position",
        ),
    ],
)
def test_structures_that_are_no_item(value, text):
    with pytest.raises(ValueError, match=text):
        PathManager().step((0, 0, 0, 0), [value])
    with pytest.raises(ValueError, match="data_type: 'half'"):
        bus_type("half")


@pytest.mark.parametrize("shape", [(-1, 1), (1, -1)])
def test_pose_and_home_are_column_or_row_vectors_as_in_matlab(shape):
    """A commanded return shows home; the first item follows ARMED at the pose."""
    pose = np.reshape([1.0, 2.0, -3.0, 0.5], shape)
    home = np.reshape([7.0, 8.0, 0.0], shape)
    item = MissionItem(2, np.reshape([1.0, 2.0, 3.0], shape), np.zeros(4).reshape(shape))
    params = PathManager().step(pose, [item], command=MissionCommand.RTL, home=home)
    assert params.current.position.tolist() == [7, 8, 0]
    assert params.previous.position.tolist() == [1, 2, -3]

    with pytest.raises(ValueError, match=r"(?s)pose: .*, expected 4 numbers"):
        PathManager().step(np.zeros((2, 2)), [item])
    with pytest.raises(ValueError, match=r"(?s)home: .*, expected 3 numbers"):
        PathManager().step(np.zeros(4), [item], home=np.zeros((3, 3)))


def test_single_is_single_throughout():
    """0.1 and 1/3 in single precision are other numbers than in double; so is the course."""
    manager = PathManager("fixed-wing", loiter_radius=0.1, data_type="single")
    away = MissionItem.waypoint((0.1, 1 / 3, -0.7), 0.3, 5.1)
    pose = (0.1, 0.2, -0.3, 0.4)

    def single(value):
        return float(np.float32(value))

    current, previous = manager.step(pose, [away], home=(0.1, 0, 0))
    for item in (current, previous):
        assert item.position.dtype == item.params.dtype == np.float32
    assert current.position.tolist() == [single(0.1), single(1 / 3), single(-0.7)]
    assert current.position.tolist() != [0.1, 1 / 3, -0.7]
    due_east = single(math.pi / 2)
    assert previous.params.tolist() == [due_east, 25.0, -1.0, -1.0]
    assert previous.position.tolist() == [single(0.1), single(0.2), single(-0.3)]

    params = manager.step(pose, [away], home=(0.1, 0, 0), command=MissionCommand.RTL)
    assert params.current.position.tolist() == [single(0.1), 0.0, 0.0]
    assert params.previous == current  # the same mission goes on, no restart
    params = manager.step(pose, [away], command=MissionCommand.HOLD)
    assert params.current.params.tolist() == [single(0.1), 0.0, -1.0, -1.0]
    assert params.to_bus().dtype == bus_type("single")

    double = PathManager().step(pose, [away])
    assert double.current.position.tolist() == [0.1, 1 / 3, -0.7]
    assert double.to_bus().dtype == bus_type("double")
    with pytest.raises(ValueError, match="data_type: 'half'"):
        PathManager(data_type="half")


def test_a_bus_of_another_name():
    manager = PathManager(mission_bus_name="SurveyBus", data_type="single")
    assert manager.bus == bus_type("single")
    assert manager.bus.metadata["name"] == manager.mission_bus_name == "SurveyBus"
    rows = [(1, (0, 0, -10), (0, 0, 0, 0)), (4, (0, 0, 0), (0, 0, 0, 0))]

    # a column of structures, as in Simulink
    params = manager.step((0, 0, 0, 0), np.array(rows, manager.bus)[:, None])
    assert params.current == MissionItem.takeoff((0, 0, -10))
    out = params.to_bus(manager.bus)
    assert out.dtype.metadata["name"] == "SurveyBus"
    manager.step((0, 0, 0, 0), np.array(rows, UAVPathManagerBus))

    other = np.array(rows, bus_type(name="OtherBus"))
    with pytest.raises(ValueError, match="mission: an array of OtherBus, expected SurveyBus"):
        manager.step((0, 0, 0, 0), other)
    with pytest.raises(ValueError, match="mission: an array of OtherBus, expected UAVPathManag"):
        PathManager().step((0, 0, 0, 0), other)
    for name in ("", "1bus", "a-b", "x" * 64, 3):
        with pytest.raises(ValueError, match="mission_bus_name: "):
            PathManager(mission_bus_name=name)
