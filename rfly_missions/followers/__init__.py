"""Kinematic vehicles that carry out one item at a time: multirotor, fixed wing, car, land-air."""
