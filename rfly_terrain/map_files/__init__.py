# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""RflySim's map files: where they are, their png and txt as heights and a calibration."""
