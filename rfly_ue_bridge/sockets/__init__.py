"""Sender, receiver, outbox."""
