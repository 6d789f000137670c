"""The node set, the runner and the rfly command."""
