# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Attacks on everything that a user or a peer can reach, for `make attack`.

No attack may end, stall or bloat a process. A module `attacks/AREA.py` offers `ATTACKS`: from the
name of an attack to a function of a random generator and a number of tries, which returns a
`Result`. Its `TRIES` and `SHORT_TRIES` are the numbers for a full and a short run.
"""

import sys
from pathlib import Path

sys.path.append(
    str(Path(__file__).parents[1] / "test")
)  # the tests' harness of nodes, and their claims to domains
