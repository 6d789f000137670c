# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MAVLink messages to bytes and back, and those that pymavlink does not know yet."""
