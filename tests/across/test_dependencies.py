"""Every package that a module imports is declared, and private parts of packages have an upper bound."""

import ast
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
FOLDERS = ("src/qabench", "loading_scripts", "metrics", "retrieval")
# The modules that import a package under another name than its distribution has.
DISTRIBUTIONS = {
    "Stemmer": "pystemmer",
    "bs4": "beautifulsoup4",
    "jnius": "pyjnius",
    "jnius_config": "pyjnius",
    "yaml": "pyyaml",
    "zipfile_zstd": "zipfile-zstd",
}
# What no extra can install: the reason.
NOT_DECLARED = {
    "bleurt": "the authors' package is not on PyPI",
    "llama_index": "one chunker of the reference's author, whose packages conflict with others",
}
# Folder or module -> the extras that it needs. Everything else needs none.
EXTRAS = {
    "src/qabench/adapters/inspect_ai": ("run", "hf"),
    "src/qabench/adapters/lm_eval": ("lm-eval",),
    "src/qabench/benchmarks/declared.py": ("autoais",),
    "src/qabench/benchmarks/expertqa": ("retrieval", "spacy"),
    "src/qabench/benchmarks/fastbook/retrieval.py": ("dense",),
    "src/qabench/cluster": ("ray",),
    "src/qabench/hub/space.py": ("space",),
    "src/qabench/llm": ("hf", "judge", "run"),
    "src/qabench/models/bleurt.py": ("bleurt",),
    "src/qabench/models/encoder.py": ("dense", "judge"),
    "src/qabench/models": ("autoais",),
    "src/qabench/report": ("report",),
    "src/qabench/runs": ("run", "hf"),
    "src/qabench/text": ("spacy",),
    "retrieval/bm25/compiled.py": ("fast",),
    "retrieval/bm25": ("retrieval",),
    "retrieval/lucene.py": ("lucene",),
    "retrieval/opensearch.py": ("opensearch", "elasticsearch"),
    "retrieval/web": ("web",),
    "retrieval/wiki": ("wikipedia", "zim"),
}


@cache
def declared(extra: str) -> dict[str, Requirement]:
    """The requirements of an extra, also those of the extras that it names; "" for the core."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = project["optional-dependencies"][extra] if extra else project["dependencies"]
    requirements: dict[str, Requirement] = {}
    for requirement in map(Requirement, lines):
        if requirement.name == "qabench":
            for other in requirement.extras:
                requirements |= declared(other)
        else:
            requirements[canonicalize_name(requirement.name)] = requirement
    return requirements


def imports(path: Path) -> set[str]:
    """The full names of what a module imports from other packages."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.partition(".")[0] not in {*sys.stdlib_module_names, "qabench"}}


def distribution(name: str) -> str:
    package = name.partition(".")[0]
    return DISTRIBUTIONS.get(package, str(canonicalize_name(package)))


@pytest.mark.parametrize("folder", FOLDERS)
def test_imported_packages_are_declared(folder: str) -> None:
    undeclared = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        allowed = set(declared(""))
        for needing, extras in EXTRAS.items():
            if place == needing or place.startswith((f"{needing}/", f"{needing}.py")):
                for extra in extras:
                    allowed |= declared(extra).keys()
        for name in imports(path):
            if distribution(name) not in allowed and name.partition(".")[0] not in NOT_DECLARED:
                undeclared.append(f"{place}: {name}")
    assert undeclared == [], "declare it in pyproject.toml, in the core or in the extra of this folder"


def test_private_parts_have_an_upper_bound() -> None:
    """CI tests the newest allowed versions every week."""
    private = {"httpx2"}  # io/transport.py replaces the network backend of its connection pool
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            private |= {distribution(name) for name in imports(path) if re.search(r"\._[a-z]", name)}
    assert {"httpx2", "inspect-ai"} <= private
    requirements = declared("") | declared("all")
    unbounded = [name for name in private if "<" not in str(requirements[name].specifier)]
    assert unbounded == []


def test_ci_tests_the_newest_versions_every_week() -> None:
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    newest = workflow.partition("\n  newest:\n")[2]
    assert "\n  schedule:\n" in workflow and "github.event_name == 'schedule'" in newest
    assert 'pip install ".[test]"\n' in newest and "constraints" not in newest
