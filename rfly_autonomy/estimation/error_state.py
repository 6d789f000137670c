# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Places of the errors in the filter's error state, covariance and Jacobians.

Attitude errors are rotation vectors in world axes: R_true = exp(error) R. Biases are in body axes,
drifts in world axes.
"""

from __future__ import annotations

POSITION = 0
VELOCITY = 3
ATTITUDE = 6
GYRO_BIAS = 9
FORCE_BIAS = 12
GPS_DRIFT = 15
BARO_BIAS = 18
FIELD_BIAS = 19
AHRS_DRIFT = 22
GROUND_ERROR = 25
SLIP = 26

ERRORS = 27
"""Number of errors."""
