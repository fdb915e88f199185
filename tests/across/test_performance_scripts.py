"""The scripts that measure: the table of results, and the comparison of revisions."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from script_modules import importing_from

FOLDER = Path(__file__).parent.parent.parent / "performance"


@pytest.fixture(autouse=True)
def _importable() -> Iterator[None]:
    with importing_from(FOLDER, ("run", "compare", "cases")):
        yield


class Fake:
    """A worker whose times vary like those on a busy machine: the drift is common, the noise is its
    own.
    """

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


def test_every_script_is_found_and_described() -> None:
    from cases import script_names

    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert "bm25" in script_names() and [name for name in script_names() if f"`{name}" not in readme] == []


def test_a_run_that_was_interrupted_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import cases

    monkeypatch.setattr(cases, "HERE", tmp_path)
    first = cases.Unfinished("script")
    assert first.get("100 passages", lambda: [1.5]) == [1.5]
    with pytest.raises(KeyboardInterrupt):
        first.get("1,000 passages", _interrupted)
    second = cases.Unfinished("script")
    assert second.get("100 passages", _interrupted) == [1.5]
    assert second.get("1,000 passages", lambda: [2.5]) == [2.5]
    second.finish()
    assert list(tmp_path.iterdir()) == []


def _interrupted() -> None:
    raise KeyboardInterrupt
