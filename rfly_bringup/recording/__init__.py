"""ROS topics to MCAP files and to Foxglove, and from MCAP files: messages as bytes, with their
definitions. No ROS.
"""
