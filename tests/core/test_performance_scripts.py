"""The scripts that measure: the table of results, and the comparison of revisions."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from script_modules import importing_from

FOLDER = Path(__file__).parent.parent.parent / "performance"


@pytest.fixture(autouse=True)
def _importable() -> Iterator[None]:
    with importing_from(FOLDER, ("run", "compare", "cases")):
        yield


class Fake:
    """A worker whose times vary like those on a busy machine: the drift is common, the noise is its own."""

    drift = 1.0

    def __init__(self, seconds: float, seed: int) -> None:
        self.base, self.noise = seconds, random.Random(seed)

    def seconds(self) -> float:
        Fake.drift *= 1.01
        return self.base * Fake.drift * self.noise.uniform(0.9, 1.3)


@pytest.mark.parametrize(("slowdown", "found"), [(1.2, True), (1.0, False)])
def test_compare_finds_a_slowdown_of_20_percent(slowdown: float, found: bool) -> None:
    import compare

    verdicts = set()
    for seed in range(20):
        old, new = Fake(0.1, seed), Fake(0.1 * slowdown, -seed - 1)
        ratio, low, _ = compare.compared(old, new, 15)  # type: ignore[arg-type]
        verdicts.add(ratio >= compare.LEAST and low > 1)
    assert verdicts == {found}


def test_results_have_medians_ratios_and_alternatives() -> None:
    import run
    from cases import Case, Measured

    slow = iter([0.5, 0.3, 0.4])
    others = {"other 1.0": lambda: Measured(next(slow), 7, "9 MB"), "slow": lambda: Measured(2.0, 7)}
    case = Case("sum", lambda: Measured(0.1, 7), others, once=frozenset(["slow"]), warm=False)
    row: dict[str, Any] = {"case": "sum", "size": 1000, "compared": True, **run.rounds_of(case, 3)}
    text = run.document({"adding": {"machine": "M", "rows": [row], "table": ""}})
    assert "| sum | 1,000 | 100 ms (100 to 100) | other 1.0 | 400 ms (350 to 450), 9 MB | 4x | equal |" in text
    assert "| slow | 2 s | 20x | equal |" in text


def test_every_script_is_found_and_described() -> None:
    from cases import script_names

    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert "bm25" in script_names()
    assert [name for name in script_names() if f"`{name}" not in readme] == []
