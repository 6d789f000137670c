# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Execution of missions: path manager, completion, the runner, and the check before the flight."""
