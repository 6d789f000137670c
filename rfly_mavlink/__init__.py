# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Everything that speaks to ground stations and autopilots: MAVLink, ArduPilot, the own link.

`stations` are vehicles as ground stations see them, `links` and `autopilots` bring controllers
outside to the simulation.
"""

from rfly_common.imports import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
