# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The standard atmosphere for kernels: the functions of `physics`, compiled."""

from __future__ import annotations

from rfly_common import physics
from rfly_common.kernels.jit import inner_kernel

standard_temperature = inner_kernel(physics.standard_temperature)
pressure_at_temperature = inner_kernel(physics.pressure_at_temperature)
air_density = inner_kernel(physics.air_density)
