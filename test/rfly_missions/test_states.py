# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The transition tables of a mission and of a vehicle behind MAVLink, as wholes."""

from rfly_mavlink.stations import flight_state
from rfly_mavlink.stations.flight_state import FlightEvent, FlightState, next_state
from rfly_missions.execution.mission_phase import (
    COMMAND_EVENTS,
    SHOWN,
    TRANSITIONS,
    MissionEvent,
    MissionPhase,
)
from rfly_missions.mission.items import MissionCommand


def reachable(table, start):
    """Return all states that the table leads to from a start."""
    states = {start}
    while True:
        following = states.union(*(table[state].values() for state in states))
        if following == states:
            return states
        states = following


def test_every_phase_is_reached_and_takes_every_command():
    assert reachable(TRANSITIONS, MissionPhase.IDLE) == set(MissionPhase) == set(SHOWN)
    assert set(COMMAND_EVENTS) == set(MissionCommand)
    for phase, transitions in TRANSITIONS.items():
        assert {MissionEvent.BEGIN, MissionEvent.BEGIN_EMPTY} <= set(transitions)
        if phase is not MissionPhase.IDLE:
            assert set(COMMAND_EVENTS.values()) <= set(transitions)


def test_only_an_item_that_is_flown_can_be_done():
    done = {MissionEvent.ITEM_DONE, MissionEvent.LAST_ITEM_DONE}
    assert [phase for phase in MissionPhase if done & set(TRANSITIONS[phase])] == [
        MissionPhase.FLYING
    ]


def test_an_interruption_remembers_whether_the_mission_is_finished():
    for phase in set(MissionPhase) - {MissionPhase.IDLE}:
        for event in (MissionEvent.CONTINUE, MissionEvent.HOLD, MissionEvent.RETURN):
            assert TRANSITIONS[phase][event].is_finished is phase.is_finished


def test_every_state_of_a_vehicle_is_reached_and_can_be_left_by_disarming():
    table = flight_state.TRANSITIONS
    assert reachable(table, FlightState.DISARMED) == set(FlightState)
    for state in FlightState:
        assert next_state(state, FlightEvent.DISARM) is FlightState.DISARMED


def test_an_event_without_a_transition_changes_nothing():
    assert next_state(FlightState.DISARMED, FlightEvent.START) is FlightState.DISARMED
    assert next_state(FlightState.IDLE, FlightEvent.END) is FlightState.IDLE
