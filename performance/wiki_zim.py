"""Writes a ZIM file with the HTML pages below a folder, such as extracted documentation packages of Debian.

apt-get download rust-doc openjdk-17-doc python-scipy-doc ...
for deb in *.deb; do dpkg-deb --fsys-tarfile $deb | tar x -C pages --wildcards '*.html'; done
python performance/wiki_zim.py pages docs.zim
"""

from __future__ import annotations

import argparse
import html
import random
import re
from pathlib import Path
from typing import Any

from libzim.writer import Compression, Creator, FileProvider, Hint, Item

TITLE = re.compile(rb"<title[^>]*>(.*?)</title>", re.DOTALL | re.IGNORECASE)


class Page(Item):
    """A file as an article; the title is that of the HTML."""

    def __init__(self, root: Path, path: Path) -> None:
        super().__init__()
        self.file = path
        self.path = str(path.relative_to(root))
        found = TITLE.search(path.read_bytes()[:20_000])
        title = html.unescape(found[1].decode("utf-8", "replace")) if found else ""
        self.title = " ".join(title.split())[:200] or self.path

    def get_path(self) -> str:
        return self.path

    def get_title(self) -> str:
        return self.title

    def get_mimetype(self) -> str:
        return "text/html"

    def get_contentprovider(self) -> Any:
        return FileProvider(self.file)

    def get_hints(self) -> dict[Any, int]:
        return {Hint.FRONT_ARTICLE: True}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--plain", action="store_true", help="without compression")
    parser.add_argument("--pages", type=int, help="a random sample of this number of pages, seeded")
    options = parser.parse_args()
    pages = sorted(path for path in options.folder.rglob("*.html") if path.is_file() and not path.is_symlink())
    if options.pages:
        pages = sorted(random.Random(0).sample(pages, options.pages))
    creator = Creator(options.file).config_indexing(False, "eng")
    if options.plain:
        creator.config_compression(Compression.none)
    with creator:
        for path in pages:
            creator.add_item(Page(options.folder, path))
        creator.set_mainpath(str(pages[0].relative_to(options.folder)))
    size = sum(path.stat().st_size for path in pages)
    print(f"{len(pages):,} pages, {size:,} bytes of HTML: {options.file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
