# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Lifecycle of a node that a manager brings up, such as Nav2's, with rclpy's state machine.

Theory of operation. The states are those of ROS 2's managed nodes: unconfigured, inactive, active,
finalized. `configure`, `activate`, `deactivate` and `cleanup` lead from one to the next and call
the node's step of that name; `shutdown` and an error call the steps that undo what was done.
"""

from __future__ import annotations

from collections.abc import Callable

from rclpy.lifecycle import LifecycleNodeMixin, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node
from rclpy.service import Service

from rfly_common.errors import RflyError
from rfly_common.ros.callback_errors import report_error

ACTIVE = "active"
"""State in which a node serves."""
Transition = Callable[[], None]


class Lifecycle(LifecycleNodeMixin):
    """State machine of one node, with the services and the topic of managed nodes.

    A step that raises an RflyError fails: the error is logged and the state stays. After any other
    error the node is unconfigured.
    """

    def __init__(
        self,
        node: Node,
        *,
        configure: Transition,
        activate: Transition,
        deactivate: Transition,
        cleanup: Transition,
    ) -> None:
        self._node = node
        self._configure = configure
        self._activate = activate
        self._deactivate = deactivate
        self._cleanup = cleanup

        # what the mixin expects of a node
        self.handle = node.handle
        self._services: list[Service] = []
        super().__init__(callback_group=node.default_callback_group)
        node._services.extend(self._services)  # no public way to add a service that exists

    @property
    def state(self) -> str:
        """Name of the present state, such as inactive."""
        _, label = self._state_machine.current_state
        return str(label)

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Configure the node."""
        return self._run(self._configure)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Begin to serve."""
        return self._run(self._activate)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop serving."""
        return self._run(self._deactivate)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Forget what configure made."""
        return self._run(self._cleanup)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop serving and forget, from any state."""
        return self._run(self._deactivate, self._cleanup)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop serving and forget after an error."""
        return self._run(self._deactivate, self._cleanup)

    def _run(self, *steps: Transition) -> TransitionCallbackReturn:
        try:
            for step in steps:
                step()
        except RflyError as error:
            self._node.get_logger().error(str(error))
            return TransitionCallbackReturn.FAILURE
        except Exception as error:  # noqa: BLE001  rclpy would drop it without a word
            report_error(self._node, error)
            return TransitionCallbackReturn.ERROR
        return TransitionCallbackReturn.SUCCESS
