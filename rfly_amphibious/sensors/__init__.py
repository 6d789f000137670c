# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sensor models: IMU, GPS, magnetometer, barometer, encoders, lidar, cameras, and their noise."""
