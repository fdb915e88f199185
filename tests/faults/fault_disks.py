"""Full and read-only disks, as small tmpfs mounts: one error, no half-written file, and success with more space."""

from __future__ import annotations

import functools
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fault_child import Child, command
from fault_harness import Campaign
from fault_kills import SAMPLE, expected_scores, offline

ENOUGH = "64m"
LARGEST = 400  # KiB of the results and caches


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


def remount(place: Path, option: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{option}", place], check=True, capture_output=True)


def scoring(folder: Path, place: Path) -> Child:
    """Scoring with results and caches on the disk."""
    answers = next((SAMPLE / "generations").glob("*.jsonl"))
    outputs = ["-o", place / "out.json", "--per-item", place / "items.jsonl"]
    options = ["--config", "sample", "--lemmatizer", "simplemma", "--json", "--quiet", *outputs]
    return Child(command("score", "fanoutqa", answers, *options), folder, **offline(place))


def whole(place: Path) -> bool:
    """Whether both results are there. Raises AssertionError for a part of one."""
    paths = [place / name for name in ("out.json", "items.jsonl")]
    for path, expected in zip(paths, expected_scores(), strict=True):
        if path.exists() and path.read_bytes() != expected:
            raise AssertionError(f"{path.name} is not whole")
    return all(path.exists() for path in paths)


def full_disk(chance: random.Random, folder: Path) -> str:
    return _case(folder, lambda place: None, chance.randrange(4, 100) / 100)


def read_only_disk(chance: random.Random, folder: Path) -> str:
    return _case(folder, lambda place: remount(place, "ro"), 40.0, "rw,")


def _case(folder: Path, prepare: Callable[[Path], None], share: float, writable: str = "") -> str:
    with disk(folder, max(16, int(LARGEST * share))) as place:
        prepare(place)
        child = scoring(folder, place)
        code = child.wait()
        lines = [line for line in child.errors.splitlines() if line.startswith("qabench:")]
        if code not in (0, 1) or len(lines) > 1:
            raise AssertionError(f"exit code {code}, {child.errors[-300:]}")
        if not whole(place) and code == 0:
            raise AssertionError("exit code 0 without the files")
        remount(place, f"{writable}size={ENOUGH}")
        again = scoring(folder, place)
        if again.wait() != 0 or not whole(place):
            raise AssertionError(f"not finished with space: {again.errors[-300:]}")
    return "one error, then finished with space" if code else "finished"


CAMPAIGNS = [
    Campaign(
        "disk-full", "disk full at a random point", "one error or success, no partial file", full_disk, 5, no_mounts
    ),
    Campaign("disk-read-only", "read-only disk", "one error or success, no file", read_only_disk, 4, no_mounts),
]
