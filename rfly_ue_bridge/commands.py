"""RflySim3D's console commands as datagrams, and what is known about single commands."""

from __future__ import annotations

from rfly_common.errors import CommandError
from rfly_ue_bridge.to_rflysim3d import CHECKSUM, CHECKSUM_LAN, UE4_CMD, UE4_CMD0, UE4_CMD_NET

MAX_SHORT_BYTES = 51
MAX_LONG_BYTES = 249
"""Although the field of the long command holds 252 bytes: RflySim's own limit."""
MAX_LAN_BYTES = 91

MAP_CHANGE_SECONDS = 1.0
"""After a map change RflySim3D takes no poses for about this time; RflySim's SDK waits as long."""


def encode_command(text: str) -> bytes:
    """A console command: Ue4CMD0 (56 bytes) up to 51 bytes of UTF-8, Ue4CMD (256 bytes) up to 249.

    Raises CommandError for a text that is empty, too long or holds a zero byte, where RflySim3D would cut it.
    """
    raw = _checked(text, MAX_LONG_BYTES)
    if len(raw) <= MAX_SHORT_BYTES:
        return UE4_CMD0.struct.pack(CHECKSUM, raw)
    return UE4_CMD.struct.pack(CHECKSUM, raw)


def encode_command_lan(text: str) -> bytes:
    """A console command to all RflySim3D of a network: Ue4CMDNet (96 bytes), up to 91 bytes of UTF-8. Same errors."""
    return UE4_CMD_NET.struct.pack(CHECKSUM_LAN, _checked(text, MAX_LAN_BYTES))


def changes_map(text: str) -> bool:
    """True for a command after which RflySim3D loads a map: the SDK's own rule, case and place in the text as there."""
    return "RflyChangeMap" in text


def _checked(text: str, limit: int) -> bytes:
    try:
        raw = text.encode()
    except UnicodeEncodeError as error:
        raise CommandError(f"the command is not valid Unicode text: {error}") from error
    if not raw.strip():
        raise CommandError("the command is empty; expected a text such as 'RflyChangeMapbyName Grasslands'")
    if len(raw) > limit:
        raise CommandError(f"the command has {len(raw)} bytes, at most {limit} are possible: {text[:40]!r}…")
    if b"\0" in raw:
        raise CommandError(f"the command holds a zero character, where RflySim3D would cut it: {text[:60]!r}")
    return raw
