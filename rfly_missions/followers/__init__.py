"""Vehicles that follow the set-points of a mission: multirotor, fixed wing, ground vehicle,
land-air vehicle.
"""
