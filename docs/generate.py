"""Writes the generated parts of cards and pages: ``python docs/generate.py [--check] [FILE ...]``.

A generated part is what is between the lines ``<!-- generated: NAME ARGUMENT ... -->`` and ``<!-- end -->``. With
``--check`` nothing is written, and the exit code is 1 if a file is not current. Parts whose source files are not
available (set QABENCH_MIRROR) stay as they are.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from cards import card_parts

from qabench.errors import SourceError

ROOT = Path(__file__).parents[1]
CARDS = sorted([*ROOT.glob("loading_scripts/*/README.md"), *ROOT.glob("metrics/*/README.md")])
PART = re.compile(r"(?<=<!-- generated: )([^\n]+?)( -->\n)(.*?)(?=<!-- end -->)", re.DOTALL)


def generated(text: str, parts: Mapping[str, Callable[..., str]]) -> str:
    """The text with its generated parts written anew.

    Args:
        text: a card or page.
        parts: name of a part -> a function of the part's arguments that writes it.
    """

    def written(found: re.Match[str]) -> str:
        name, *arguments = found[1].split()
        try:
            return f"{found[1]}{found[2]}\n{parts[name](*arguments)}\n\n"
        except SourceError:  # the files are not on this machine
            return found[0]

    return PART.sub(written, text)


def current(path: Path) -> str:
    """A card as it should be."""
    return generated(path.read_text(encoding="utf-8"), card_parts(path))


def main() -> None:
    """Writes or checks the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, default=CARDS)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    stale = [path for path in given.files if current(path.resolve()) != path.read_text(encoding="utf-8")]
    for path in stale:
        print(path)
        if not given.check:
            path.write_text(current(path.resolve()), encoding="utf-8")
    sys.exit(bool(stale) and given.check)


if __name__ == "__main__":
    main()
