"""A MAVLink vehicle endpoint for ground stations: bytes in, bytes out, no sockets, no clock of its
own, no ROS.
"""
