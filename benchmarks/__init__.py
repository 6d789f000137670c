# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Benchmarks of hot paths against what a user would choose instead: `python -m benchmarks`."""

import sys
from pathlib import Path

# the tests' oracles are peers of some kernels
sys.path.append(str(Path(__file__).parents[1] / "test"))
