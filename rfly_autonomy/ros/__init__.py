# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Estimator, controllers, guidance and mapping as nodes, and their topics and messages."""
