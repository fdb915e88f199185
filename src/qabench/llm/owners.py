"""Which process holds a claim, and whether that process has ended."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

SEPARATOR = "/"


def new_owner() -> str:
    """A unique name for an owner of claims in this process, from which ``has_ended`` identifies the process."""
    return SEPARATOR.join((uuid.uuid4().hex, _machine(), str(os.getpid()), _start_of(os.getpid())))


def has_ended(owner: str) -> bool:
    """Whether the owner's process is known to have ended.

    False if that cannot be known: on systems other than Linux, on another machine or in another container.
    """
    _, machine, pid, start = [*owner.split(SEPARATOR), "", "", "", ""][:4]
    if not machine or machine != _machine() or not pid.isdecimal() or not start:
        return False
    return _start_of(int(pid)) != start  # another start time: the number was given to another process


def _machine() -> str:
    """Identifies the running kernel and the namespace of process ids; "" if these are unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}-{os.stat('/proc/self/ns/pid').st_ino}"
    except (OSError, ValueError):
        return ""


def _start_of(pid: int) -> str:
    """When a process started, in clock ticks since boot; "" for one that does not exist or is a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return ""
    # The second field is the command in parentheses, which can contain spaces and parentheses.
    fields = stat[stat.rfind(b")") + 2 :].split()
    if len(fields) < 20 or fields[0] in (b"Z", b"X"):
        return ""
    return fields[19].decode("ascii")
