"""A benchmark outside of the package: held-out questions, a metric of another column, and the
errors of its author.
"""

import json
from pathlib import Path

import datasets
import pytest

import qabench
from qabench.cli.new import new
from qabench.errors import InputError
from qabench.hub.build import build
from qabench.loading_scripts import dataset_table
from qabench.loading_scripts.builder import rows_builder
from qabench.prompts.prompt import AskOnce, Prompt

pytestmark = pytest.mark.quick
ANSWERS = [{"id": "r1", "answer": "It is the Seine."}]
METRIC = "rivers/metrics/rivers_match/rivers_match.py"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    new("rivers", tmp_path)
    monkeypatch.setenv("QABENCH_PATH", str(tmp_path))
    return tmp_path


def change(path: Path, old: str, new_text: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new_text))


def hold_out(folder: Path) -> None:
    """Add a config without answers."""
    table = json.loads((folder / "rivers/configs.json").read_text())
    table["configs"]["held_out"] = {"description": "no answers", "splits": {"test": ["./held_out.jsonl"]}}
    (folder / "rivers/configs.json").write_text(json.dumps(table))
    row = {"id": "h1", "question": "Which river flows through Rome?", "answer": None, "continent": "Europe"}
    (folder / "rivers/held_out.jsonl").write_text(json.dumps(row) + "\n")


def test_held_out_questions_are_loaded_and_not_scored(folder: Path) -> None:
    hold_out(folder)
    rows = qabench.load_dataset("rivers", "held_out", split="test")
    assert rows.features == qabench.load_dataset("rivers", split="test").features and rows[0]["answer"] is None
    with pytest.raises(InputError, match=r"held_out.jsonl has no answers"):
        qabench.evaluate_predictions("rivers", "held_out", [{"id": "h1", "answer": "the Tiber"}])


def test_references_of_another_column(folder: Path) -> None:
    change(folder / METRIC, "    STRINGS", '    REFERENCE = "continent"\n    STRINGS')
    change(folder / "rivers/__init__.py", 'item.row["answer"]', 'item.row["continent"]')
    metric = qabench.load_metric("rivers_match")
    assert metric.compute(predictions=["It is in Asia."], references=["Asia"])["match"] == 1


@pytest.mark.parametrize(
    ("file", "old", "new_text", "message"),
    [
        ("rivers/questions.jsonl", '"r2"', '"r1"', "line 2: the id 'r1' is repeated"),
        ("rivers/questions.jsonl", '"id": "r2", ', "", "line 2: the field 'id' is missing"),
        ("rivers/questions.jsonl", ', "continent": "Africa"', "", "a row without the column 'continent'"),
        ("rivers/configs.json", '"default"', "default", "configs.json: not JSON"),
        (
            "rivers/configs.json",
            '"default": "questions"',
            '"default": "all"',
            "default config is 'all'; allowed: quest",
        ),
        (
            "rivers/__init__.py",
            'groups = ("match",)',
            'groups = ("mach",)',
            "unknown group 'mach' .did you mean 'match'",
        ),
    ],
)
def test_errors_of_the_author_say_where(folder: Path, file: str, old: str, new_text: str, message: str) -> None:
    change(folder / file, old, new_text)
    with pytest.raises(InputError, match=message):
        qabench.evaluate_predictions("rivers", None, ANSWERS)


def test_a_score_that_the_scorer_does_not_return_is_named(folder: Path) -> None:
    change(folder / "rivers/__init__.py", "scores = (", 'scores = (ScoreSpec("exact", "Exact", "Equal.", "match"), ')
    evaluation = qabench.evaluate_predictions("rivers", None, ANSWERS)
    expected = "Rivers scores that no answer has: exact; the answers have only: match"
    assert evaluation.problems[-1] == expected


def test_a_wrong_group_of_a_metric(folder: Path) -> None:
    change(folder / METRIC, 'GROUP = "match"', 'GROUP = "mach"')
    with pytest.raises(InputError, match=r"RiversMatch.GROUP: Rivers has no group 'mach'"):
        qabench.load_metric("rivers_match").compute(predictions=["x"], references=["x"])


def test_a_folder_without_benchmarks_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_PATH", str(folder / "rivers"))
    with pytest.raises(InputError, match=r"or one in a folder of QABENCH_PATH"):
        qabench.evaluate_predictions("rivers", None, ANSWERS)


def test_a_field_of_the_prompt_that_is_no_column() -> None:
    with pytest.raises(InputError, match=r"'fact' .did you mean 'facts'"):
        AskOnce(Prompt("x", "{fact}")).messages({"facts": ["a"]})


@pytest.mark.parametrize("name", ["json", "felm", "pandas", "datasets", "qabench"])
def test_names_of_modules_are_refused(name: str, tmp_path: Path) -> None:
    """A package of the name of an installed one would hide it from QABENCH_PATH=DIR on."""
    with pytest.raises(InputError, match=f"{name} is the name of a benchmark, or of an importable module"):
        new(name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_keywords_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="class is a Python keyword; choose another name"):
        new("class", tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_dataset_says_what_it_is(folder: Path, tmp_path: Path) -> None:
    """Description, license and citation are those of the card and of citation.bib, also in a built
    copy.
    """
    info = qabench.load_dataset("rivers", split="test").info
    assert info.description.startswith("Which river flows through a city?")
    assert info.license == "cc-by-4.0" and "Which River Flows" in info.citation
    build(tmp_path / "built", ["rivers"])
    built = datasets.load_dataset(str(tmp_path / "built/rivers"), split="test", cache_dir=str(tmp_path / "cache")).info
    assert (built.description, built.license, built.citation) == (info.description, info.license, info.citation)
    for text in ("", "---\nlicense: [\n---\n# Rivers\n"):
        (folder / "rivers/README.md").write_text(text)
        assert rows_builder("rivers").LICENSE == "" and rows_builder("rivers").DESCRIPTION == "Rivers"


def test_the_data_layer_imports_no_code_from_outside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "rivers/configs.json").unlink()
    monkeypatch.setattr("qabench.loading_scripts._readers", [])
    with pytest.raises(InputError, match=r"rivers in .* has no configs\.json, .* import qabench\.benchmarks first"):
        dataset_table("rivers")
