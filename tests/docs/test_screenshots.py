"""The pictures of the site can be taken again, and every picture that a page shows is one of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"


@pytest.mark.slow
def test_the_pictures_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jinja2", reason="needs the extra report")
    import screenshots

    monkeypatch.setattr("sys.argv", ["screenshots.py", str(tmp_path)])
    screenshots.main()
    taken = {path.name for path in tmp_path.iterdir()}
    assert taken == {path.name for path in IMAGES.iterdir()}
    assert all(path.stat().st_size > 20_000 for path in tmp_path.iterdir())


def test_every_picture_is_shown() -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    shown = {name for page in pages for name in re.findall(r"images/([\w-]+\.png)", page.read_text(encoding="utf-8"))}
    assert shown == {path.name for path in IMAGES.iterdir()}
