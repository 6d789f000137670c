# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Node sets: executables, parameters and remappings, described once."""
