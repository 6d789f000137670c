"""Benchmarks of hot paths against what a user would choose instead: `python -m benchmarks`."""

import sys
from pathlib import Path

# the tests' oracles are peers of some kernels
sys.path.append(str(Path(__file__).parents[1] / "test"))
