# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Copyright notice and licence at the top of each source file; this script adds missing ones.

    python docs/source_headers.py

It is the short form that the Apache Software Foundation allows and that tools read by SPDX.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOTICE = ("Copyright 2026 rfly_suite maintainers", "SPDX-License-Identifier: Apache-2.0")
COMMENTS = {".cmake": "#", ".cpp": "//", ".py": "#", ".pyi": "#"}
"""How a comment begins, by the ending of the file's name."""
FOLDERS = ("attacks", "benchmarks", "cmake", "docs", "examples", "launch", "test", "wheels")


def source_files() -> Iterator[Path]:
    """Yield all source files of the tree."""
    yield ROOT / "setup.py"
    for folder in (*(ROOT / name for name in FOLDERS), *ROOT.glob("rfly_*/")):
        yield from (path for path in sorted(folder.rglob("*")) if path.suffix in COMMENTS)


def header(suffix: str) -> str:
    """Return the lines at the top of a file with this ending."""
    return "".join(f"{COMMENTS[suffix]} {line}\n" for line in NOTICE)


def has_header(path: Path) -> bool:
    """Return whether the file begins with the header, or has it after its interpreter's line."""
    text = path.read_text(encoding="utf-8")
    return _without_interpreter(text)[1].startswith(header(path.suffix))


def _without_interpreter(text: str) -> tuple[str, str]:
    """Split the line with the interpreter off, which stays the first one."""
    end = text.index("\n") + 1 if text.startswith("#!") else 0
    return text[:end], text[end:]


def main() -> None:
    for path in source_files():
        if not has_header(path):
            interpreter, rest = _without_interpreter(path.read_text(encoding="utf-8"))
            path.write_text(f"{interpreter}{header(path.suffix)}\n{rest}", encoding="utf-8")
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
