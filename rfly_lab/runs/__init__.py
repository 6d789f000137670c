# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Runs of scenarios: the closed loop, its records, logs, plots, and parameter sweeps."""
