# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Identification: parameters of a vehicle found in logs of what it did."""
