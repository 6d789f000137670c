"""Datagrams in and out of the browser window."""
