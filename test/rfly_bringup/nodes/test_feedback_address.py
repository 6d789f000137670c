# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Which address hears a host."""

from __future__ import annotations

import socket

import pytest

from rfly_bringup.nodes import argument_files
from rfly_bringup.nodes.argument_files import fill_feedback_addresses, local_address_towards


@pytest.mark.parametrize(
    "host", ["", "127.0.0.1", "127.0.0.3", "localhost", "no such host.invalid", "ö" * 70]
)
def test_this_machine_and_unknown_ones_need_none(host):
    assert local_address_towards(host) == ""
    assert fill_feedback_addresses({"host": host}) == {"host": host}


def test_the_address_that_faces_a_host_is_one_of_this_machine():
    """The address that faces a documentation address (RFC 5737) is one of this machine.

    Nothing is sent to it. A machine without any network has no answer.
    """
    address = local_address_towards("203.0.113.9")
    if address:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind((address, 0))
            assert not address.startswith("127.")


@pytest.mark.parametrize(
    ("given", "bind", "interface"),
    [
        ({}, "10.0.0.7", "10.0.0.7"),
        ({"feedback_bind": "0.0.0.0"}, "0.0.0.0", "10.0.0.7"),
        ({"feedback_bind": "", "feedback_multicast_interface": "10.9.9.9"}, "10.0.0.7", "10.9.9.9"),
    ],
)
def test_what_is_given_stays(monkeypatch, given, bind, interface):
    monkeypatch.setattr(
        argument_files,
        "local_address_towards",
        lambda host: "10.0.0.7" if host == "10.0.0.5" else "",
    )
    assert fill_feedback_addresses({"host": "10.0.0.5", "windows": "2", **given}) == {
        "host": "10.0.0.5",
        "windows": "2",
        "feedback_bind": bind,
        "feedback_multicast_interface": interface,
    }
    assert fill_feedback_addresses({"windows": "2"}) == {"windows": "2"}
