"""State estimation: error-state Kalman filter, alignment, dead reckoning."""
