# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Drives that several test files look at, each computed once."""

from __future__ import annotations

import pytest
from recorded_drives import SENSORS, SHORT_DRIVE, SHORT_HOP, Drive

from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.sensors.sensor_suite import SensorSuite


@pytest.fixture(scope="session")
def turn():
    return Drive.of(Scenario.parse(SHORT_DRIVE.encode(), "s.yaml"))


@pytest.fixture(scope="session")
def hop():
    return Drive.of(Scenario.parse(SHORT_HOP.encode(), "s.yaml"))


@pytest.fixture(scope="session")
def flown(hop):
    """Samples and truth of each tick."""
    return list(hop.samples(SensorSuite(hop.model, SENSORS, seed=1)))
