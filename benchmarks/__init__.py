"""Our hot paths timed beside what a user would pick instead: `python -m benchmarks [NAME ...]`."""

import sys
from pathlib import Path

# the tests' oracles, which some kernels are timed beside
sys.path.append(str(Path(__file__).parents[1] / "test"))
