# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Scenarios: what a simulation begins with, and what happens in it."""
