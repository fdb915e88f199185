"""The page of numbers in the papers: its tables are those of the real data."""

from pathlib import Path

import numbers_page
import pytest


def test_tables_are_current(mirror: Path) -> None:
    text = numbers_page.PAGE.read_text(encoding="utf-8")
    assert numbers_page.written(text) == text, "python docs/numbers_page.py writes the tables"


@pytest.mark.parametrize("name", ["fanoutqa", "expertqa", "felm", "fastbook"])
def test_every_benchmark_has_a_table(name: str) -> None:
    text = numbers_page.PAGE.read_text(encoding="utf-8")
    tables = {part[1]: part[3] for part in numbers_page.PART.finditer(text)}
    assert "| what | published | here |" in tables[name]
