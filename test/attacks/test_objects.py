# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A storm of placed and removed objects, in its short form."""

from __future__ import annotations

import random

import pytest


@pytest.mark.exhaustive
@pytest.mark.ros
@pytest.mark.slow
def test_objects_are_as_in_a_dictionary():
    from attacks import objects

    result = objects.storm(random.Random(1), objects.SHORT_TRIES)
    assert (result.tried, result.failures) == (objects.SHORT_TRIES, ())
