"""Attacks on what a user or a peer can reach, for `make attack`: nothing may end, stall or swell a
process.

A module `attacks/AREA.py` offers `ATTACKS`, from the name of an attack to a function of a random
generator and of how many tries it is given, which returns a `Result`. `TRIES` and `SHORT_TRIES`
beside it say how many that are in a full and in a short run.
"""

import sys
from pathlib import Path

sys.path.append(
    str(Path(__file__).parents[1] / "test")
)  # the tests' harness of nodes, and their claims to domains
