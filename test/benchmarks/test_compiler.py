# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The C++ peer of the land-air step is built with the layout of our own records."""

from __future__ import annotations

import shutil

import pytest

from benchmarks.bench_compiler import land_air_library, land_air_steps
from benchmarks.harness import DISAGREES
from rfly_amphibious import VehicleParameters
from rfly_amphibious.vehicle.vehicle_record import kernel_records, vehicle_record

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None, reason="the program g++ is not installed"
)


def test_the_step_in_cpp_reads_the_fields_that_the_vehicle_has():
    """A field that is renamed breaks the build of the peer, which else only `make bench` does."""
    params = VehicleParameters.load("full")
    record = kernel_records(vehicle_record(params, True, False, 0.0))
    assert land_air_library(record.dtype).land_air_steps


@pytest.mark.exhaustive
def test_the_step_in_cpp_goes_where_ours_goes():
    """The order of points in the record is part of the layout: rotors once read the corners."""
    rows = list(land_air_steps())
    assert len(rows) == 2
    assert not any(row.agree.startswith(DISAGREES) for row in rows)
