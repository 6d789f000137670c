# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""POSIX extended regular expressions by regcomp(3) of the C library, which does not backtrack.

Python's `re` has another syntax, and takes exponential time for some expressions.
"""

from __future__ import annotations

import ctypes

# <regex.h> of glibc
_REG_EXTENDED = 1
_REG_NOSUB = 8
_REGEX_BYTES = 256
"""More than sizeof(regex_t)."""
_ERROR_BYTES = 100


class PosixRegex:
    """A compiled expression. Raises ValueError with the C library's reason for an invalid one."""

    def __init__(self, pattern: str) -> None:
        self._libc = ctypes.CDLL(None)
        compiled = ctypes.create_string_buffer(_REGEX_BYTES)
        code = self._libc.regcomp(compiled, pattern.encode(), _REG_EXTENDED | _REG_NOSUB)
        if code:
            reason = ctypes.create_string_buffer(_ERROR_BYTES)
            self._libc.regerror(code, compiled, reason, len(reason))
            raise ValueError(reason.value.decode())
        self._compiled = compiled

    def __del__(self) -> None:
        if hasattr(self, "_compiled"):
            self._libc.regfree(self._compiled)

    def found_in(self, text: str) -> bool:
        """Return whether some part of the text matches."""
        return bool(self._libc.regexec(self._compiled, text.encode(), 0, None, 0) == 0)
