# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The transition table of a vehicle behind MAVLink, as a whole."""

from rfly_mavlink.stations import flight_state
from rfly_mavlink.stations.flight_state import FlightEvent, FlightState, next_state


def reachable(table, start):
    """Return all states that the table leads to from a start."""
    states = {start}
    while True:
        following = states.union(*(table[state].values() for state in states))
        if following == states:
            return states
        states = following


def test_every_state_of_a_vehicle_is_reached_and_can_be_left_by_disarming():
    table = flight_state.TRANSITIONS
    assert reachable(table, FlightState.DISARMED) == set(FlightState)
    for state in FlightState:
        assert next_state(state, FlightEvent.DISARM) is FlightState.DISARMED


def test_an_event_without_a_transition_changes_nothing():
    assert next_state(FlightState.DISARMED, FlightEvent.START) is FlightState.DISARMED
    assert next_state(FlightState.IDLE, FlightEvent.END) is FlightState.IDLE
