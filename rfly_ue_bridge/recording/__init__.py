"""Pcap, recorder, replay."""
