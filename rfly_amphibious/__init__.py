# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The land-air vehicle: six rotors on a four-wheel chassis.

It is one multibody system on the ground and in the air.
"""

from rfly_common.imports import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
