"""Tests mirror the packages: the test of a module is found by its name, or in a table."""

import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS = ROOT / "tests"
FOLDERS = {"src/qabench": "", "loading_scripts": "loading_scripts", "metrics": "metrics", "retrieval": "retrieval"}
TESTED_BY = tomllib.loads((TESTS / "tested_by.toml").read_text(encoding="utf-8"))


def modules() -> set[Path]:
    """The modules with code, by their path below tests/."""
    paths = set()
    for folder, mirrored in FOLDERS.items():
        for path in (ROOT / folder).rglob("*.py"):
            is_template = "template" in path.parts
            if not is_template and path.read_text(encoding="utf-8").strip():
                paths.add(Path(mirrored) / path.relative_to(ROOT / folder))
    return paths


def named_test(module: Path) -> Path:
    name = module.parent.name if module.name == "__init__.py" else module.stem
    return module.with_name(f"test_{name}.py")


def test_every_module_has_its_test() -> None:
    listed = {Path(module) for modules in TESTED_BY.values() for module in modules}
    lost = sorted(str(module) for module in modules() - listed if not (TESTS / named_test(module)).exists())
    assert lost == [], "name a test after these modules, or add them to tests/tested_by.toml"


def test_the_table_is_current() -> None:
    listed = Counter(Path(module) for modules in TESTED_BY.values() for module in modules)
    assert [str(module) for module, count in listed.items() if count > 1] == []
    assert sorted(str(module) for module in listed.keys() - modules()) == [], "no such modules"
    with_test = [str(module) for module in listed if (TESTS / named_test(module)).exists()]
    assert with_test == [], "these have a test of their own name"
    assert [test for test in TESTED_BY if not (TESTS / test).is_file()] == [], "no such tests"
