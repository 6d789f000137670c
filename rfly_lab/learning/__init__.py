# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Environments to learn in: many land-air vehicles at once, as Gymnasium's environments."""
