# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`python -m rfly_bringup.demo`."""

from rfly_common import startup

startup.run_command_module("rfly_bringup.demo.demo")  # handles signals before the imports begin
