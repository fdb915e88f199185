"""Cards of datasets and metrics: the Hub's templates and metadata, generated parts, tables of arguments."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import generate
import huggingface_hub
import pytest
from huggingface_hub import DatasetCard, SpaceCard

import qabench
from qabench.loading_scripts import benchmark_names, dataset_table
from qabench.loading_scripts.published import LEADERBOARD
from qabench.metrics import metric_names

ROOT = Path(__file__).parents[2]
TEMPLATE = Path(huggingface_hub.__file__).parent / "templates" / "datasetcard_template.md"
# The sections of evaluate's template for metric cards.
METRIC_SECTIONS = [
    "## Metric Description",
    "## How to Use",
    "### Inputs",
    "### Output Values",
    "#### Values from Popular Papers",
    "### Examples",
    "## Limitations and Bias",
    "## Citation",
    "## Further References",
]
GIVEN = ("predictions", "references")


def headings(text: str) -> list[str]:
    """The headings of a card, without those in code."""
    return re.findall(r"^#{1,4} .+$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)


def template_sections() -> list[str]:
    """The sections of the Hub's template, but those at its end that are optional."""
    found = headings(TEMPLATE.read_text(encoding="utf-8"))[1:]
    wanted = [name.removesuffix(" [optional]") for name in found]
    optional = ("## Glossary", "## More Information", "## Dataset Card Authors")
    return [name for name in wanted if not name.startswith(("# ", "---", *optional))]


def card(folder: str, name: str) -> str:
    return (ROOT / folder / name / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "category"),
    [("fanoutqa", "1K<n<10K"), ("expertqa", "1K<n<10K"), ("felm", "n<1K"), ("fastbook", "n<1K")],
)
def test_size_category_is_that_of_the_published_rows(name: str, category: str) -> None:
    """FanOutQA has 310 + 724 questions, ExpertQA 2,177, FELM 847 responses, fastbook 191 questions."""
    text = card("loading_scripts", name)
    assert DatasetCard(text).data["size_categories"] == [category]


@pytest.mark.parametrize("path", generate.CARDS, ids=lambda path: path.parent.name)
def test_generated_parts_are_current(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert generate.PART.search(text)
    assert generate.current(path) == text, "run docs/generate.py"


@pytest.mark.parametrize("name", benchmark_names())
def test_dataset_cards_follow_the_template(name: str) -> None:
    found = headings(card("loading_scripts", name).split("---\n", 2)[2])
    assert found[0].startswith("# Dataset Card for ")
    wanted = template_sections()
    assert [heading for heading in found if heading in wanted] == wanted


@pytest.mark.parametrize("name", benchmark_names())
def test_dataset_cards_have_the_metadata(name: str) -> None:
    data = DatasetCard(card("loading_scripts", name)).data
    for key in (
        "license",
        "language",
        "pretty_name",
        "task_categories",
        "size_categories",
        "tags",
        "source_datasets",
        "multilinguality",
        "language_creators",
    ):
        assert data.get(key), key
    configs = [config["config_name"] for config in data["configs"]]
    assert configs == list(dataset_table(name).configs) == [info["config_name"] for info in data["dataset_info"]]
    assert [config["config_name"] for config in data["configs"] if config.get("default")] == configs[:1]
    extras = [one.startswith("sample") or one == LEADERBOARD for one in configs]
    assert extras == sorted(extras), "the viewer lists the authors' data first"


@pytest.mark.parametrize("name", metric_names())
def test_metric_cards_follow_the_template(name: str) -> None:
    text = card("metrics", name)
    data = SpaceCard(text).data
    assert data.sdk == "gradio" and {"evaluate", "metric"} <= set(data.tags or ())
    found = headings(text)
    assert found[0] == f"# Metric Card for {name}"
    assert [heading for heading in found if heading in METRIC_SECTIONS] == METRIC_SECTIONS


@pytest.mark.parametrize("name", metric_names())
def test_metric_cards_list_the_arguments(name: str) -> None:
    parameters: Any = inspect.signature(type(qabench.load_metric(name))._compute).parameters
    inputs = card("metrics", name).partition("### Inputs")[2].partition("### Output")[0]
    listed = [argument for row in re.findall(r"^\| (`.+?) \|", inputs, re.MULTILINE) for argument in row.split(", ")]
    assert [one.strip("`") for one in listed] == [one for one in parameters if one not in ("self", *GIVEN)]
