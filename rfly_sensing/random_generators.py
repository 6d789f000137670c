# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Random generators of sensors: one seed, and a stream for each name."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np


def sensor_generator(seed: int | Sequence[int], name: str, *number: int) -> np.random.Generator:
    """Return the random generator of one sensor, or of its measurement `number` alone.

    The sensors of one seed differ by their names.
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(zlib.crc32(name.encode()), *number))
    return np.random.Generator(np.random.PCG64(sequence))
