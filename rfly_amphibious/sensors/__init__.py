"""What it senses: IMU … lidar, cameras, noise, the scene's rays."""
