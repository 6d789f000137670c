# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sensors aboard: IMU, GPS, magnetometer, barometer, encoders, their noise, lidar and cameras."""
