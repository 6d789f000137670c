"""Sensor models: IMU, GPS, magnetometer, barometer, encoders, lidar, cameras, and their noise."""
