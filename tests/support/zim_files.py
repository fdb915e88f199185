"""ZIM files of a few pages, written with libzim."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from libzim.writer import Creator, Hint, Item, StringProvider


class _File(Item):
    def __init__(self, path: str, title: str, mimetype: str, content: str | bytes) -> None:
        super().__init__()
        self._fields = path, title, mimetype
        self._content = content

    def get_path(self) -> str:
        return self._fields[0]

    def get_title(self) -> str:
        return self._fields[1]

    def get_mimetype(self) -> str:
        return self._fields[2]

    def get_contentprovider(self) -> Any:
        return StringProvider(self._content)

    def get_hints(self) -> dict[Any, int]:
        return {Hint.FRONT_ARTICLE: self._fields[2] == "text/html"}


def write_zim(
    path: Path, pages: Mapping[str, str | bytes], redirects: Mapping[str, str] | None = None, full_text: bool = False
) -> Path:
    """A ZIM file with HTML pages by title, redirects from title to title, and an image."""
    with Creator(path).config_indexing(full_text, "eng") as creator:
        for title, html in pages.items():
            creator.add_item(_File(title.replace(" ", "_"), title, "text/html", html))
        for title, target in (redirects or {}).items():
            creator.add_redirection(title.replace(" ", "_"), title, target.replace(" ", "_"), {Hint.FRONT_ARTICLE: 1})
        creator.add_item(_File("image.png", "", "image/png", b"\x89PNG"))
        creator.set_mainpath(next(iter(pages)).replace(" ", "_"))
        creator.add_metadata("Title", "Birds")
    return path
