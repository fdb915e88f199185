"""The architecture: layers, packages, packaging lists, lazy imports, fast start."""

import ast
import functools
import json
import re
import runpy
import subprocess
import sys
from collections.abc import Container, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from typer.testing import CliRunner

import qabench
from qabench.cli import app

ROOT = Path(__file__).parent.parent
FOLDERS = {"src/qabench": "qabench", "loading_scripts": "qabench.loading_scripts", "metrics": "qabench.metrics"}
FOLDERS["retrieval"] = "qabench.retrieval"

# From the bottom up: a module imports from its own layer and those before it.
LAYERS = [
    ["errors", "io", "stats", "data"],
    ["text", "evaluation"],
    ["loading_scripts", "prompts"],
    ["retrieval", "llm", "models"],
    ["cluster"],
    ["benchmarks"],
    ["adapters"],
    ["metrics"],
    ["runs", "report", "hub"],
    ["cli", "__main__"],
]
FORMULAS = {
    "expertqa": ("agreement", "factscore", "lfqa"),
    "fanoutqa": ("accuracy", "judge"),
    "fastbook": ("answer_components",),
    "felm": ("scores",),
}
PURE = (
    *("qabench.data.answers", "qabench.stats", "qabench.text.rouge"),
    *(f"qabench.benchmarks.{name}.{module}" for name, modules in FORMULAS.items() for module in modules),
)
FRAMEWORKS = {"datasets", "evaluate", "openai", "huggingface_hub", "httpx2"}
# Who may import a harness or a cluster: all others work without it. Benchmarks declare plans and
# protocols, from which an adapter builds tasks.
ROOMS = {
    "inspect_ai": (
        "qabench.adapters.inspect_ai",
        "qabench.runs",
        "qabench.llm.inspect_client",
        "qabench.llm.inspect_providers",
        "qabench.cli.run",
    ),
    "lm_eval": ("qabench.adapters.lm_eval",),
    "evaluate": ("qabench.adapters.metric", "qabench.metrics", "qabench.hub"),
    "ray": ("qabench.cluster",),
}
# What prints: everything else calls these, so that no text from outside reaches a terminal
# unescaped.
PRINTERS = {"qabench.io.redaction", "qabench.cli.output"}


@functools.cache
def modules() -> dict[str, Path]:
    found = {}
    for folder, package in FOLDERS.items():
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            found[".".join([package, *(part for part in parts if part != "__init__")])] = path
    return found


@functools.cache
def imports_of(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.add(node.module or "")
            names |= {f"{node.module}.{alias.name}" for alias in node.names if node.module}
    return names


def module_of(name: str, known: Container[str]) -> str:
    """The module that a name is, or is imported from."""
    while name not in known:
        name = name.rpartition(".")[0]
    return name


def package_of(name: str, known: dict[str, Path]) -> str:
    """The package of a module or of a name in it; a module of the top level is a package of its
    own.
    """
    name = module_of(name, known)
    if known[name].name == "__init__.py" or name.count(".") == 1:
        return name
    return name.rpartition(".")[0]


def cycle(dependencies: dict[str, set[str]]) -> list[str]:
    """The packages of one import cycle, in order; [] if there is none."""
    try:
        TopologicalSorter(dependencies).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def layer_of(module: str) -> int:
    if module == "qabench":
        return len(LAYERS)  # the facade imports lazily from everywhere
    part = module.split(".")[1]
    if re.match(r"qabench\.benchmarks\.\w+\.commands\b", module):
        part = "cli"  # commands of one benchmark, referenced only by its descriptor
    return next(i for i, layer in enumerate(LAYERS) if part in layer)


def test_imports_go_down() -> None:
    assert [found for module in modules() if module != "qabench" for found in _wrong_imports(module)] == []


def _wrong_imports(module: str) -> Iterator[str]:
    imported = imports_of(modules()[module])
    for name in {module_of(one, modules()) if one.startswith("qabench") else one for one in imported}:
        # which only lists its folders
        if name.startswith("qabench.") and name != "qabench.metrics":
            if layer_of(name) > layer_of(module):
                yield f"{module} imports {name}, which is in a layer above"
            if module.startswith("qabench.metrics.") and name.startswith("qabench.metrics.") and name.count(".") > 2:
                yield f"{module} imports another metric: {name}"
    if module.startswith(PURE) and (frameworks := {name.split(".")[0] for name in imported} & FRAMEWORKS):
        yield f"{module} is pure and imports {', '.join(sorted(frameworks))}"


def test_a_harness_is_imported_in_its_room_only() -> None:
    outside = []
    for module, path in modules().items():
        for package in {name.split(".")[0] for name in imports_of(path)} & ROOMS.keys():
            if not module.startswith(ROOMS[package]):
                outside.append(f"{module} imports {package}")
    assert outside == []


def test_adapters_are_above_benchmarks() -> None:
    benchmark, adapter = "qabench.benchmarks.felm.tasks", "qabench.adapters.inspect_ai.tasks"
    assert layer_of("qabench.evaluation.scoring") < layer_of(benchmark) < layer_of(adapter)
    assert layer_of(adapter) < layer_of("qabench.runs.running") < layer_of("qabench.cli.run")


def test_the_page_lists_the_same_layers() -> None:
    page = (ROOT / "docs/how-it-works/architecture.md").read_text(encoding="utf-8")
    block = page.partition("```text\n")[2].partition("```")[0]
    listed = [re.split(r" {4,}", line.strip())[0].split() for line in block.splitlines()]
    tested = [[name for name in layer if name != "__main__"] for layer in reversed(LAYERS)]
    assert [set(layer) for layer in listed] == [set(layer) for layer in tested]


def test_modules_that_are_named_exist() -> None:
    assert [name for name in PURE if name not in modules()] == []
    named = re.findall(r"``(\w+)``", (qabench.__doc__ or "").partition("Submodules:")[2])
    assert named and [name for name in named if f"qabench.{name}" not in modules()] == []


def test_packages_have_no_import_cycle() -> None:
    known = modules()
    dependencies: dict[str, set[str]] = {}
    for module, path in known.items():
        if module != "qabench":  # which imports its public names lazily
            own = _unit_of(module, known)
            imported = {_unit_of(name, known) for name in imports_of(path) if name.startswith("qabench.")}
            dependencies.setdefault(own, set()).update(imported - {own, "qabench"})
    assert cycle(dependencies) == []


def _unit_of(name: str, known: dict[str, Path]) -> str:
    """The package of a module, or its benchmark; a module of commands is in another layer and
    stands alone.
    """
    module = module_of(name, known)
    if commands := re.match(r"qabench\.benchmarks\.\w+\.commands\b", module):
        return commands[0]
    package = package_of(module, known)
    match = re.match(r"qabench\.benchmarks\.\w+", package)
    return match[0] if match else package


def test_cycles_are_found() -> None:
    assert set(cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})) == {"a", "b", "c"}
    assert cycle({"a": {"b", "c"}, "b": {"c"}}) == []


def test_the_packaging_lists_every_package() -> None:
    found = runpy.run_path(str(ROOT / "setup.py"), run_name="setup_file")
    assert found["packages"]() == sorted({package_of(name, modules()) for name in modules() if _in_package(name)})
    assert found["ROOTS"] == {package: folder for folder, package in FOLDERS.items()}


def _in_package(name: str) -> bool:
    return modules()[name].name == "__init__.py" or name.count(".") > 1


def test_folders_have_no_hyphens_and_unique_names() -> None:
    assert not [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if "-" in path.stem and path.is_dir()]
    assert not (ROOT / "qabench").exists(), "a folder ./qabench would shadow the Hub name qabench/fanoutqa"


def test_help_imports_no_framework() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from qabench.cli import app; "
        "asked = [], ['score'], ['run'], ['report'], ['quickstart'], ['wiki', 'prefetch'], ['fanoutqa', 'submit']; "
        "assert not any(CliRunner().invoke(app, [*one, '--help']).exit_code for one in asked); "
        "assert 'pydantic' not in sys.modules; "
        "assert not CliRunner().invoke(app, ['list', 'felm', '--json']).exit_code; "
        "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    slow = {"datasets", "evaluate", "numpy", "openai", "pandas", "spacy", "httpx2", "sqlite3", "rich"}
    assert not slow & set(loaded)


def test_a_run_imports_only_its_benchmark(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai", reason="needs the extra run")
    code = (
        "import atexit, sys; sys.argv = ['qabench', 'run', 'felm', '--config', 'sample', '--limit', '1', "
        "'--model', 'mockllm/model', '--dry-run']; "
        "atexit.register(lambda: print(*(name for name in sys.modules if name.startswith('qabench.benchmarks.')))); "
        "from qabench.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    imported = {name.split(".")[2] for name in done.stdout.splitlines()[-1].split()}
    assert "felm" in imported and not imported & {"fanoutqa", "expertqa", "fastbook"}


def test_importing_qabench_is_cheap_and_has_its_names() -> None:
    code = "import sys, qabench; assert 'datasets' not in sys.modules; [getattr(qabench, n) for n in qabench.__all__]"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        __import__("qabench").nope  # noqa: B018


def test_tests_have_short_names() -> None:
    files = list((ROOT / "tests").rglob("test_*.py"))
    names = [name for path in files for name in re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8"))]
    assert [name for name in names if len(name) >= 60] == []


def test_only_two_modules_print() -> None:
    printing = [
        f"{module}, line {node.lineno}"
        for module, path in modules().items()
        if module not in PRINTERS
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and _prints(node.func)
    ]
    assert printing == [], "call say, warn, write_line or write_document"


def _prints(called: ast.expr) -> bool:
    name = ast.unparse(called)
    return name in ("print", "typer.echo", "typer.secho", "sys.stdout.write", "sys.stderr.write") or (
        name.endswith(".print") and not name.startswith("self.")
    )


def test_classes_have_different_names() -> None:
    places: dict[str, list[str]] = {}
    for module, path in modules().items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(module)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_a_command_imports_the_benchmark_it_names_only(tmp_path: Path) -> None:
    with (ROOT / "loading_scripts/felm/sample/all.jsonl").open(encoding="utf-8") as lines:
        rows = list(map(json.loads, lines))
    answers = [{"id": row["index"], "labels": row["labels"]} for row in rows]
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps(answer) + "\n" for answer in answers))
    code = (
        "import sys; from qabench.cli import app\n"
        f"app(['score', 'felm', {str(file)!r}, '--config', 'sample'], standalone_mode=False)\n"
        "names = [name.split('.')[2] for name in sys.modules if name.startswith('qabench.benchmarks.')]\n"
        "assert 'felm' in names and not {'expertqa', 'fanoutqa', 'fastbook'}.intersection(names), names"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_options_are_those_of_the_named_benchmark() -> None:
    def options(*arguments: str) -> str:
        return CliRunner().invoke(app, [*arguments, "--help"]).output

    assert "--reply-format" in options("score", "felm") and "--judge-model" not in options("score", "felm")
    assert "--reply-format" in options("score") and "--judge-model" in options("score")
