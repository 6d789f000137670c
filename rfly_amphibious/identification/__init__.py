"""Identification: parameters of a vehicle found in logs of what it did."""
