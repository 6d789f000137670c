# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Analysis: what follows from a vehicle's parameters without a simulation."""
