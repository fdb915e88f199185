"""Full and read-only disks, as small tmpfs mounts: one error, no half-written file, and success
with more space.
"""

import functools
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fault_harness import Campaign
from fault_kills import is_whole, scoring

ENOUGH = "64m"
LARGEST = 120  # KiB: some of the results and caches fit


@functools.cache
def no_mounts() -> str | None:
    """Why no tmpfs can be mounted here; None if it can."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or not shutil.which("mount"):
        return "needs root and mount, for small tmpfs disks"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", folder], capture_output=True)
        if done.returncode:
            return "this container may not mount a tmpfs"
        subprocess.run(["umount", folder], check=True, capture_output=True)
    return None


@contextmanager
def disk(folder: Path, size: int) -> Iterator[Path]:
    """A disk of this many KiB."""
    place = folder / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "none", place], check=True, capture_output=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True, capture_output=True)


def scored_on(folder: Path, size: int, options: str) -> str:
    """Score on a disk of this many KiB, then again with enough space."""
    with disk(folder, size) as place:
        remount(place, options)
        child = scoring(folder, place)
        code = child.wait()
        lines = [line for line in child.errors.splitlines() if line.startswith("qabench:")]
        if code not in (0, 1) or len(lines) > 1:
            raise AssertionError(f"exit code {code}, {child.errors[-300:]}")
        if not is_whole(place) and code == 0:
            raise AssertionError("exit code 0 without the files")
        remount(place, f"rw,size={ENOUGH}")
        again = scoring(folder, place)
        if again.wait() != 0 or not is_whole(place):
            raise AssertionError(f"not finished with space: {again.errors[-300:]}")
    return "one error, then finished with space" if code else "finished"


def remount(place: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", place], check=True, capture_output=True)


def full_disk(chance: random.Random, folder: Path) -> str:
    return scored_on(folder, chance.randrange(16, LARGEST), "rw")


def read_only_disk(chance: random.Random, folder: Path) -> str:
    return scored_on(folder, 16_000, "ro")


CAMPAIGNS = [
    Campaign("disk-full", "one error or success, no partial file", full_disk, 5, no_mounts),
    Campaign("disk-read-only", "one error or success, no file", read_only_disk, 2, no_mounts),
]
