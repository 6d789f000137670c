# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Links to controllers outside: UDP and TCP frames, MAVLink HIL."""
