"""Compares the files that pip would install for pins of .ci/constraints.txt with the digests in
.ci/hashes.txt.

A file with another digest ends CI. A file without a recorded digest (another platform, a local
build) is printed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

HERE = Path(__file__).parent


def lines(name: str) -> list[str]:
    """The lines of a file in this folder without comments."""
    text = (HERE / name).read_text(encoding="utf-8")
    return [line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#")]


def chosen(pin: str) -> list[tuple[str, str]]:
    """Name and SHA-256 of the files that pip would install for a pin, without its dependencies."""
    options = ["--dry-run", "--ignore-installed", "--no-deps", "--quiet", "--report", "-"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, pin],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = [one["download_info"] for one in json.loads(done.stdout)["install"]]
    return [
        (unquote(one["url"].rpartition("/")[2]), one["archive_info"]["hashes"]["sha256"])
        for one in found
    ]


def main() -> None:
    recorded = dict(line.split() for line in lines("hashes.txt"))
    packages = {name.partition("-")[0] for name in recorded}
    pins = [pin for pin in lines("constraints.txt") if pin.partition("==")[0] in packages]
    failed = False
    for name, digest in (file for pin in pins for file in chosen(pin)):
        expected = recorded.get(name)
        failed |= expected not in (None, digest)
        state = (
            "ok"
            if expected == digest
            else "no digest is recorded"
            if expected is None
            else f"WRONG, not {expected}"
        )
        print(f"{name} {digest}: {state}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
