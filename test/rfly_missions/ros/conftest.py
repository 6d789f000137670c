# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""mission_node as a process, and a peer that hears little of it."""

from __future__ import annotations

from contextlib import ExitStack

import pytest


@pytest.fixture
def start(domain_id):
    """Starts mission_node with parameters (a dot is written __); the end of the test stops it."""
    from node_harness import NodeProcess

    with ExitStack() as stack:
        yield lambda **parameters: stack.enter_context(
            NodeProcess(
                "mission_node",
                domain_id,
                {key.replace("__", "."): value for key, value in parameters.items()},
            )
        )
