# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Distribution of whole test files over processes, which goes on where one of them has crashed.

After a crash, xdist's `--dist loadfile` gives the process's files out again, also those that are
done. A process that gets nothing to do by that waits for ever with its last test, and so does the
run.
"""

from __future__ import annotations

from typing import Any


def whole_files(config: Any, log: Any) -> Any:
    """Return the scheduler. xdist is not there where colcon collects the tests."""
    from xdist.scheduler import LoadFileScheduling

    class WholeFiles(LoadFileScheduling):
        def remove_node(self, node: Any) -> str | None:
            """Remove a process, and give others what it has left.

            Return the test during which it crashed, which is not tried again; None: it has ended.
            """
            files = self.assigned_work.pop(node)
            left = [
                (name, test)
                for name, tests in files.items()
                for test, done in tests.items()
                if not done
            ]
            if not left:
                return None

            name, crashed = left[0]
            files[name][crashed] = True
            self.workqueue.update(
                {name: tests for name, tests in files.items() if not all(tests.values())}
            )
            for other in self.nodes:
                self._reschedule(other)
            return crashed

        def _reschedule(self, node: Any) -> None:
            """Give a process the two tests that it needs to begin, or say that all have ended."""
            super()._reschedule(node)
            while self._wants_more(node):
                self._assign_work_unit(node)

            if not self.workqueue:
                for each in self.nodes:
                    if not each.shutting_down:
                        each.shutdown()

        def _wants_more(self, node: Any) -> bool:
            known = node in self.registered_collections and node in self.assigned_work
            few = known and self._pending_of(self.assigned_work[node]) < 2
            return few and bool(self.workqueue) and not node.shutting_down

    return WholeFiles(config, log)
