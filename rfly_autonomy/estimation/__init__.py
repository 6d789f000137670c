# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""State estimation: error-state Kalman filter, alignment, dead reckoning."""
