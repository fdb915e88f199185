"""Prints the section of CHANGELOG.md on a version, for the notes of its release: ``release_notes.py
VERSION``.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"


def notes(changelog: str, version: str) -> str:
    """The text between the heading of a version and the next one.

    Raises:
        SystemExit: there is no such section, or it is empty.
    """
    found = re.search(
        rf"^## {re.escape(version)}\b[^\n]*\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL
    )
    if not found or not found[1].strip():
        sys.exit(f"CHANGELOG.md has no section ## {version} with text in it")
    return found[1].strip() + "\n"


if __name__ == "__main__":
    print(notes(CHANGELOG.read_text(encoding="utf-8"), sys.argv[1]), end="")
