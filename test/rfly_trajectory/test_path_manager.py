"""The mission state machine: worked scenarios, written as inputs -> current ; previous.

Items are mode@x,y,z/p1,p2,p3,p4. A step lists only the inputs that differ from command 0, not done, pose 0,0,0,0,
home 0,0,0 and the scenario's mission.
"""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfly_trajectory import MissionCommand, MissionItem, MissionMode, PathManager

NAMES = {
    "T": "1@0,0,-10/0,0,0,0",
    "A": "2@100,0,-10/0,5,0,0",
    "B": "2@100,100,-10/1.5,8,3,4",
    "O": "3@50,50,-20/30,1,2,0",
    "L": "4@0,0,0/0,0,0,0",
    "R": "5@7,7,7/1,2,3,4",
    "U": "6@5,-5,-30/9,8,7,6",
    "ARM": "0@0,0,0/-1,-1,-1,-1",
}

SCENARIOS = {
    "P1 first step": (
        "MR",
        "T A",
        [
            "-> T ; ARM",
        ],
    ),
    "P2 armed position is the pose of the first step": (
        "MR",
        "T A",
        [
            "pose=3,4,-0.5,1 -> T ; 0@3,4,-0.5/-1,-1,-1,-1",
            "pose=3,4,-2,1 -> T ; 0@3,4,-0.5/-1,-1,-1,-1",
        ],
    ),
    "P3 done on the first step is ignored": (
        "MR",
        "T A",
        [
            "done -> T ; ARM",
            "done -> A ; 1@0,0,-10/0,25,0,0",
        ],
    ),
    "P4 not done: nothing moves": (
        "MR",
        "T A",
        [
            "-> T ; ARM",
            "-> T ; ARM",
            "pose=0,0,-10,0 -> T ; ARM",
        ],
    ),
    "P5 whole mission": (
        "MR",
        "T A B O L",
        [
            "-> T ; ARM",
            "done -> A ; 1@0,0,-10/0,25,0,0",
            "-> A ; 1@0,0,-10/0,25,0,0",
            "done -> B ; A",
            "done -> O ; B",
            "done -> L ; O",
            "-> L ; O",
        ],
    ),
    "P6 done held true advances once per step": (
        "MR",
        "T A B L",
        [
            "-> T ; ARM",
            "done -> A ; 1@0,0,-10/0,25,0,0",
            "done -> B ; A",
            "done -> L ; B",
        ],
    ),
    "P7 land at the end stays": (
        "MR",
        "T L",
        [
            "-> T ; ARM",
            "done -> L ; T",
            "done -> L ; T",
            "done -> L ; T",
        ],
    ),
    "P8 end without land: hold where the last item ended": (
        "MR",
        "T A",
        [
            "-> T ; ARM",
            "done -> A ; 1@0,0,-10/0,25,0,0",
            "done pose=99,1,-10.2,0.3 -> 7@99,1,-10.2/-1,-1,-1,-1 ; A",
            "done pose=97,2,-10,0.3 -> 7@99,1,-10.2/-1,-1,-1,-1 ; A",
        ],
    ),
    "P9 end hold, fixed wing": (
        "FW 40",
        "T A",
        [
            "-> T ; ARM",
            "done -> A ; 1@0,0,-10/0,25,0,0",
            "done pose=99,1,-10,0 -> 7@99,1,-10/40,0,-1,-1 ; A",
            "pose=120,30,-10,2 -> 7@99,1,-10/40,0,-1,-1 ; A",
        ],
    ),
    "P10 hold and resume": (
        "MR",
        "T A B",
        [
            "-> T ; ARM",
            "done -> A ; 1@0,0,-10/0,25,0,0",
            "cmd=1 pose=40,0,-10,0 -> 7@40,0,-10/-1,-1,-1,-1 ; A",
            "cmd=1 done pose=41,0,-10,0 -> 7@40,0,-10/-1,-1,-1,-1 ; A",
            "pose=41,0,-10,0 -> A ; 7@40,0,-10/0,25,-1,-1",
            "done -> B ; A",
        ],
    ),
    "P11 hold, fixed wing, resume to a takeoff": (
        "FW 40",
        "T A",
        [
            "-> T ; ARM",
            "cmd=1 pose=0,0,-5,0 -> 7@0,0,-5/40,0,-1,-1 ; T",
            "-> T ; 7@0,0,-5/40,0,-1,-1",
        ],
    ),
    "P12 hold on the first step": (
        "MR",
        "T A",
        [
            "cmd=1 pose=1,2,0,0 -> 7@1,2,0/-1,-1,-1,-1 ; 0@1,2,0/-1,-1,-1,-1",
            "done pose=1,2,0,0 -> T ; 7@1,2,0/-1,-1,-1,-1",
        ],
    ),
    "P13 done and hold in one step: the item counts as done": (
        "MR",
        "T A B",
        [
            "-> T ; ARM",
            "cmd=1 done pose=0,0,-9,0 -> 7@0,0,-9/-1,-1,-1,-1 ; T",
            "-> A ; 7@0,0,-9/0,25,-1,-1",
        ],
    ),
    "P14 last item done and hold, then default": (
        "MR",
        "T A",
        [
            "-> T ; ARM",
            "done -> A ; 1@0,0,-10/0,25,0,0",
            "cmd=1 done pose=99,0,-10,0 -> 7@99,0,-10/-1,-1,-1,-1 ; A",
            "pose=98,0,-10,0 -> 7@99,0,-10/-1,-1,-1,-1 ; A",
        ],
    ),
    "P15 last item done and hold, then repeat": (
        "MR",
        "T A",
        [
            "-> T ; ARM",
            "done -> A ; 1@0,0,-10/0,25,0,0",
            "cmd=1 done pose=99,0,-10,0 -> 7@99,0,-10/-1,-1,-1,-1 ; A",
            "cmd=2 -> T ; 7@99,0,-10/-1,-1,-1,-1",
        ],
    ),
    "P16 hold commanded during the end hold changes nothing": (
        "MR",
        "A",
        [
            "-> A ; 0@0,0,0/0,25,-1,-1",
            "done pose=100,0,-10,0 -> 7@100,0,-10/-1,-1,-1,-1 ; A",
            "cmd=1 pose=101,0,-10,0 -> 7@100,0,-10/-1,-1,-1,-1 ; A",
            "pose=102,0,-10,0 -> 7@100,0,-10/-1,-1,-1,-1 ; A",
        ],
    ),
    "P17 return to launch and resume with default": (
        "MR",
        "T A B",
        [
            "home=1,2,0 -> T ; ARM",
            "done home=1,2,0 -> A ; 1@0,0,-10/0,25,0,0",
            "cmd=3 home=1,2,0 -> 5@1,2,0/-1,-1,-1,-1 ; A",
            "cmd=3 done home=1,2,0 -> 5@1,2,0/-1,-1,-1,-1 ; A",
            "done home=1,2,0 -> A ; 5@1,2,0/-0.0201993,25,-1,-1",
            "done home=1,2,0 -> B ; A",
        ],
    ),
    "P18 return to launch broken off by repeat": (
        "MR",
        "T O",
        [
            "-> T ; ARM",
            "cmd=3 -> 5@0,0,0/-1,-1,-1,-1 ; T",
            "cmd=2 -> T ; 5@0,0,0/-1,-1,-1,-1",
            "cmd=2 done -> O ; T",
        ],
    ),
    "P19 done and return to launch in one step": (
        "MR",
        "T O",
        [
            "-> T ; ARM",
            "cmd=3 done -> 5@0,0,0/-1,-1,-1,-1 ; T",
            "-> O ; 5@0,0,0/-1,-1,-1,-1",
        ],
    ),
    "P20 home is read at every step": (
        "MR",
        "T",
        [
            "-> T ; ARM",
            "cmd=3 home=1,0,0 -> 5@1,0,0/-1,-1,-1,-1 ; T",
            "cmd=3 home=2,0,0 -> 5@2,0,0/-1,-1,-1,-1 ; T",
            "home=3,0,0 -> T ; 5@2,0,0/-1,-1,-1,-1",
        ],
    ),
    "P21 RTL item takes its position from home": (
        "MR",
        "T R",
        [
            "home=4,5,0 -> T ; ARM",
            "done home=4,5,0 -> 5@4,5,0/1,2,3,4 ; T",
            "done home=6,5,0 -> 5@6,5,0/1,2,3,4 ; T",
        ],
    ),
    "P22 RTL item in the middle": (
        "MR",
        "T R B",
        [
            "-> T ; ARM",
            "done -> 5@0,0,0/1,2,3,4 ; T",
            "done -> B ; 5@0,0,0/0.25pi,25,3,4",
        ],
    ),
    "P23 repeat after land": (
        "MR",
        "T L",
        [
            "cmd=2 -> T ; ARM",
            "cmd=2 done -> L ; T",
            "cmd=2 done -> T ; L",
            "cmd=2 done -> L ; T",
        ],
    ),
    "P24 repeat of one item": (
        "MR",
        "O",
        [
            "cmd=2 -> O ; ARM",
            "cmd=2 done -> O ; O",
            "cmd=2 done -> O ; O",
        ],
    ),
    "P25 repeat while not at the end acts like default": (
        "MR",
        "T A",
        [
            "cmd=2 -> T ; ARM",
            "cmd=2 -> T ; ARM",
            "cmd=2 done -> A ; 1@0,0,-10/0,25,0,0",
        ],
    ),
    "P26 repeat asked for during the end hold": (
        "MR",
        "T O",
        [
            "-> T ; ARM",
            "done -> O ; T",
            "done pose=80,50,-20,0 -> 7@80,50,-20/-1,-1,-1,-1 ; O",
            "cmd=2 -> T ; 7@80,50,-20/-1,-1,-1,-1",
            "done -> O ; T",
            "done pose=20,50,-20,0 -> 7@20,50,-20/-1,-1,-1,-1 ; O",
        ],
    ),
    "P27 hold, then return to launch, then default": (
        "MR",
        "T O",
        [
            "-> T ; ARM",
            "cmd=1 pose=0,0,-3,0 -> 7@0,0,-3/-1,-1,-1,-1 ; T",
            "cmd=3 -> 5@0,0,0/-1,-1,-1,-1 ; 7@0,0,-3/-1,-1,-1,-1",
            "-> T ; 5@0,0,0/-1,-1,-1,-1",
        ],
    ),
    "P28 return to launch from the end hold; default holds anew": (
        "MR",
        "O",
        [
            "-> O ; ARM",
            "done pose=80,50,-20,0 -> 7@80,50,-20/-1,-1,-1,-1 ; O",
            "cmd=3 -> 5@0,0,0/-1,-1,-1,-1 ; 7@80,50,-20/-1,-1,-1,-1",
            "pose=1,1,-5,0 -> 7@1,1,-5/-1,-1,-1,-1 ; 5@0,0,0/-1,-1,-1,-1",
        ],
    ),
    "P29 return to launch after landing; default shows land again": (
        "MR",
        "L",
        [
            "-> L ; ARM",
            "done -> L ; ARM",
            "cmd=3 -> 5@0,0,0/-1,-1,-1,-1 ; L",
            "-> L ; 5@0,0,0/-1,-1,-1,-1",
            "done -> L ; 5@0,0,0/-1,-1,-1,-1",
        ],
    ),
    "P30 mission changed: start over": (
        "MR",
        "T A B",
        [
            "-> T ; ARM",
            "done -> A ; 1@0,0,-10/0,25,0,0",
            "done mission=[O L] -> O ; A",
            "done mission=[O L] -> L ; O",
        ],
    ),
    "P31 mission changed during hold": (
        "MR",
        "T A",
        [
            "-> T ; ARM",
            "cmd=1 pose=0,0,-4,0 -> 7@0,0,-4/-1,-1,-1,-1 ; T",
            "cmd=1 mission=[O L] -> 7@0,0,-4/-1,-1,-1,-1 ; T",
            "mission=[O L] -> O ; 7@0,0,-4/-1,-1,-1,-1",
        ],
    ),
    "P32 mission changed after the end": (
        "MR",
        "L",
        [
            "-> L ; ARM",
            "done -> L ; ARM",
            "mission=[T L] -> T ; L",
        ],
    ),
    "P33 empty mission, then one arrives": (
        "MR",
        "",
        [
            "pose=1,1,-1,0 -> 7@1,1,-1/-1,-1,-1,-1 ; 0@1,1,-1/-1,-1,-1,-1",
            "cmd=2 done -> 7@1,1,-1/-1,-1,-1,-1 ; 0@1,1,-1/-1,-1,-1,-1",
            "mission=[T] -> T ; 7@1,1,-1/-1,-1,-1,-1",
        ],
    ),
    "P34 empty mission, return to launch": (
        "MR",
        "",
        [
            "cmd=3 home=9,9,0 -> 5@9,9,0/-1,-1,-1,-1 ; ARM",
        ],
    ),
    "P35 custom item passes through": (
        "MR",
        "U A",
        [
            "-> U ; ARM",
            "done -> A ; 6@5,-5,-30/0.0525830661,25,7,6",
        ],
    ),
    "P36 orbit then waypoint: the line starts at the centre": (
        "MR",
        "O A L",
        [
            "-> O ; ARM",
            "done -> A ; 3@50,50,-20/-0.25pi,25,2,0",
            "done -> L ; A",
        ],
    ),
    "P37 course angle: west, south, straight up": (
        "MR",
        "1@0,0,-1/0,0,0,0 2@0,-10,-1/0,1,0,0 L 2@-5,0,-9/0,1,0,0 6@1,1,1/0,0,0,0 2@1,1,-9/2,3,0,0",
        [
            "-> 1@0,0,-1/0,0,0,0 ; ARM",
            "done -> 2@0,-10,-1/0,1,0,0 ; 1@0,0,-1/-0.5pi,25,0,0",
            "done -> L ; 2@0,-10,-1/0,1,0,0",
            "done -> 2@-5,0,-9/0,1,0,0 ; 4@0,0,0/pi,25,0,0",
            "done -> 6@1,1,1/0,0,0,0 ; 2@-5,0,-9/0,1,0,0",
            "done -> 2@1,1,-9/2,3,0,0 ; 6@1,1,1/0,25,0,0",
        ],
    ),
    "P38 first item a waypoint": (
        "MR",
        "B",
        [
            "pose=100,0,0,0 -> B ; 0@100,0,0/0.5pi,25,-1,-1",
        ],
    ),
}


def number(text):
    return float(text.removesuffix("pi") or 1) * math.pi if text.endswith("pi") else float(text)


def item(text):
    mode, position, params = re.split("[@/]", NAMES.get(text, text))
    return MissionItem(int(mode), [*map(number, position.split(","))], [*map(number, params.split(","))])


def inputs(text, mission):
    """The keyword arguments of a step."""
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
    return PathManager() if uav == "MR" else PathManager("fixed-wing", loiter_radius=float(uav.split()[1]))


def assert_item(got, expected, where):
    assert got.mode == expected.mode, where
    np.testing.assert_allclose(got.position, expected.position, atol=1e-6, err_msg=where)
    np.testing.assert_allclose(got.params, expected.params, atol=1e-6, err_msg=where)


@pytest.mark.parametrize(("uav", "mission", "steps"), SCENARIOS.values(), ids=SCENARIOS)
def test_scenario(uav, mission, steps):
    items = [item(name) for name in mission.split()]
    path_manager = manager(uav)
    for index, step in enumerate(steps):
        given, expected = step.split("->")
        current, previous = (item(text.strip()) for text in expected.split(";"))
        got = path_manager.step(**inputs(given, items))
        assert_item(got.current, current, f"step {index}: {step}: current")
        assert_item(got.previous, previous, f"step {index}: {step}: previous")


BAD = {
    "mode": lambda: [MissionItem(0, (0, 0, 0), (0, 0, 0, 0))],
    "HOLD": lambda: [MissionItem(MissionMode.HOLD, (0, 0, 0), (0, 0, 0, 0))],
    "position": lambda: [MissionItem.waypoint((1.0, 2.0))],
    "finite": lambda: [MissionItem.waypoint((1.0, math.nan, 2.0))],
    "params": lambda: [MissionItem.takeoff((0, 0, 0), (1, 2))],
    "expected one of": lambda: [MissionItem(8, (0, 0, 0), (0, 0, 0, 0))],
    "MissionItem": lambda: ["land"],
}
T, A, B = item("T"), item("A"), item("B")


@pytest.mark.parametrize(("text", "mission"), BAD.items())
def test_a_bad_mission_is_named_and_changes_nothing(text, mission):
    path_manager, untouched = PathManager(), PathManager()
    for each in (path_manager, untouched):
        each.step((0, 0, 0, 0), [T, A])
    with pytest.raises(ValueError, match=text):
        path_manager.step((1, 1, 1, 1), mission(), is_mode_done=True)
    after = [each.step((5, 0, -9, 0), [T, A], is_mode_done=True) for each in (path_manager, untouched)]
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
        path_manager.step(**{"pose": (0, 0, 0, 0), "mission": [T, A], "is_mode_done": True, **wrong})
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


def test_the_fixed_wing_hold_turns_as_asked():
    held = PathManager("fixed-wing", 60.0, -1).step((1, 2, -30, 0), [T], command=MissionCommand.HOLD).current
    assert held == MissionItem(MissionMode.HOLD, (1, 2, -30), (60, -1, -1, -1))


def test_an_equal_mission_sent_again_is_no_change_and_another_is():
    path_manager = PathManager()
    nan = math.nan

    def mission(yaw):
        return [MissionItem.takeoff((0, 0, -10), (0, 0, 0, nan)), MissionItem.waypoint((1, 2, -3), yaw)]

    path_manager.step((0, 0, 0, 0), mission(nan))
    path_manager.step((0, 0, 0, 0), mission(nan), is_mode_done=True)
    assert path_manager.index == 1
    assert path_manager.step((0, 0, 0, 0), mission(nan)).current.mode is MissionMode.WAYPOINT
    assert path_manager.step((0, 0, 0, 0), mission(1.0)).current.mode is MissionMode.TAKEOFF


def test_a_mission_changed_in_place_is_noticed():
    path_manager, mission = PathManager(), [T, A]
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
    path_manager, mission = PathManager(), (A, B)
    for done in (False, True):
        path_manager.step((0, 0, 0, 0), mission, done)
    switches = path_manager.switches
    path_manager.start_over()
    assert path_manager.step((0, 0, 0, 0), mission, is_mode_done=True) == (A, B)
    assert path_manager.switches == switches + 1
    assert path_manager.shows_item
    path_manager.step((0, 0, 0, 0), mission, command=MissionCommand.HOLD)
    assert not path_manager.shows_item


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


def test_the_position_of_a_return_is_never_read():
    back = MissionItem(MissionMode.RTL, (math.nan, 0, 0), (0, 0, 0, 0))
    assert PathManager().step((0, 0, 0, 0), [back], home=(4, 5, 6)).current.position.tolist() == [4, 5, 6]


class Slow:
    """The rules, item by item, over a mission of waypoints and at most one landing at its end: which one is shown."""

    def __init__(self, length, lands):
        self.length, self.lands, self.at, self.done_all, self.was_item = length, lands, None, False, False

    def step(self, done, command):
        if self.at is None:
            self.at = 0
        elif done and self.was_item and not self.done_all:
            self.at, self.done_all = (self.at, True) if self.at == self.length - 1 else (self.at + 1, False)
        if self.done_all and command == 2:
            self.at, self.done_all = 0, False
        shown = {1: "hold", 3: "return"}.get(command) or ("hold" if self.done_all and not self.lands else self.at)
        self.was_item = not isinstance(shown, str)
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
    path_manager, slow = PathManager(), Slow(length, lands)
    before = None
    for done, command in steps:
        got = path_manager.step((1, 1, -1, 0), mission, done, command)
        expected = slow.step(done, command)
        if expected == "hold":
            assert got.current.mode is MissionMode.HOLD
        elif expected == "return":
            assert got.current.mode is MissionMode.RTL
        else:
            assert got.current == mission[expected]
        if before is not None and got.current != before.current:
            assert got.previous.mode == before.current.mode
            assert np.array_equal(got.previous.position, before.current.position)
        before = got
