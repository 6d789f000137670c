# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Multibody dynamics: model, kernels, integrators, ground, atmosphere, wind."""
