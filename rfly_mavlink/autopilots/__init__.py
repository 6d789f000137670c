# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameters of autopilot firmware: ArduPilot and PX4."""
