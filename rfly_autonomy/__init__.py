# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Motion controller of the land-air vehicle: estimation, control, guidance and mapping.

    estimation ──> guidance ──> control ──> rotors, wheels
    sensors        legs         modes, laws

It knows the vehicle's parameters, sensors and commands, not its simulation's truth.
"""

from rfly_common.imports import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
