"""What is wrong with a running ROS graph and its machine, found in a plain snapshot of both; the
table of what runs.
"""
