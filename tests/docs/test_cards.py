"""Cards of datasets and metrics: the Hub's templates and metadata, generated parts, tables of
arguments.
"""

import re
from pathlib import Path

import generate
import huggingface_hub
import pytest
from huggingface_hub import DatasetCard, SpaceCard

from qabench.loading_scripts import benchmark_names, dataset_table
from qabench.loading_scripts.published import LEADERBOARD
from qabench.metrics import metric_class, metric_names

ROOT = Path(__file__).parents[2]
TEMPLATE = Path(huggingface_hub.__file__).parent / "templates" / "datasetcard_template.md"
# The sections of evaluate's template for metric cards.
METRIC_SECTIONS = [
    "## Metric Description", "## How to Use", "### Inputs", "### Output Values", "#### Values from Popular Papers",
    "### Examples", "## Limitations and Bias", "## Citation", "## Further References",
]  # fmt: skip


def headings(text: str) -> list[str]:
    """The headings of a card, without those in code."""
    return re.findall(r"^#{1,4} .+$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)


def template_sections() -> list[str]:
    """The sections of the Hub's template, but those at its end that are optional."""
    names = [name.removesuffix(" [optional]") for name in headings(TEMPLATE.read_text(encoding="utf-8"))[1:]]
    optional = ("## Glossary", "## More Information", "## Dataset Card Authors")
    return [name for name in names if not name.startswith(("# ", "---", *optional))]


def card(folder: str, name: str) -> str:
    return (ROOT / folder / name / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", generate.CARDS, ids=lambda path: path.parent.name)
def test_generated_parts_are_current(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert generate.PART.search(text)
    assert generate.current(path) == text, "run docs/generate.py"


def test_the_metadata_of_configs_is_written(tmp_path: Path) -> None:
    """Without its entry, the sample's metadata is built again; the configs without data keep
    theirs.
    """
    path = tmp_path / "fanoutqa/README.md"
    path.parent.mkdir()
    text = card("loading_scripts", "fanoutqa")
    path.write_text(text.replace("- config_name: sample\n", "- config_name: other\n"), encoding="utf-8")
    written = generate.with_metadata(path)
    before, after = DatasetCard(text), DatasetCard(written)
    for key in ("configs", "dataset_info"):
        entries = {entry["config_name"]: entry for entry in after.data[key]}
        assert entries["sample"] == {entry["config_name"]: entry for entry in before.data[key]}["sample"]
    assert after.text == before.text and written.partition("configs:")[0] == text.partition("configs:")[0]


@pytest.mark.parametrize("name", benchmark_names())
def test_dataset_cards_follow_the_template_with_metadata(name: str) -> None:
    sections = headings(card("loading_scripts", name).split("---\n", 2)[2])
    assert sections[0].startswith("# Dataset Card for ")
    required = template_sections()
    assert [heading for heading in sections if heading in required] == required
    data = DatasetCard(card("loading_scripts", name)).data
    keys = "license language pretty_name task_categories tags source_datasets multilinguality language_creators"
    for key in keys.split():
        assert data.get(key), key
    assert (ROOT / "loading_scripts" / name / "LICENSE.md").is_file() or data["license"] == "other"
    # FanOutQA has 310 + 724 questions, ExpertQA 2,177, FELM 847 responses, fastbook 191 questions.
    sizes = {"fanoutqa": "1K<n<10K", "expertqa": "1K<n<10K", "felm": "n<1K", "fastbook": "n<1K"}
    assert re.fullmatch(r"n<1K|1\d*[KM]<n<1\d*[KM]", data["size_categories"][0])
    assert data["size_categories"][0] == sizes.get(name, data["size_categories"][0])
    configs = [config["config_name"] for config in data["configs"]]
    extras = [config.startswith("sample") or config == LEADERBOARD for config in configs]
    assert extras == sorted(extras), "the viewer lists the authors' data first"


@pytest.mark.parametrize("name", metric_names())
def test_metric_cards_follow_the_template_with_the_arguments(name: str) -> None:
    text = card("metrics", name)
    data = SpaceCard(text).data
    assert data.sdk == "gradio" and {"evaluate", "metric"} <= set(data.tags or ())
    assert data.app_file == "app.py"  # which `qabench publish` writes
    assert data.license == "apache-2.0"
    assert 0 < len(data.short_description) <= 60  # the Hub's limit
    assert data.title and data.emoji
    requirements = (ROOT / "metrics" / name / "requirements.txt").read_text(encoding="utf-8")
    # `qabench publish` pins it
    assert len(re.findall(r"^qabench(\[[\w,-]+\])?$", requirements, re.MULTILINE)) == 1
    sections = headings(text)
    assert sections[0] == f"# Metric Card for {name}"
    assert [heading for heading in sections if heading in METRIC_SECTIONS] == METRIC_SECTIONS
    inputs = text.partition("### Inputs")[2].partition("### Output")[0]
    listed = [argument for row in re.findall(r"^\| (`.+?) \|", inputs, re.MULTILINE) for argument in row.split(", ")]
    names = [name.strip("`") for name in listed]
    assert names == metric_class(name).options()


@pytest.mark.parametrize("path", generate.CARDS, ids=lambda path: path.parent.name)
def test_cards_name_what_exists(path: Path) -> None:
    """The stock function takes Hub names of datasets that are published; others are loaded by
    qabench.
    """
    text = path.read_text(encoding="utf-8")
    uses_ours = "from qabench import load_dataset" in text
    for prefix, name, config in re.findall(r'(\w+\.|)load_dataset\("([^"]+)"(?:, "([^"]+)")?', text):
        table = dataset_table(name)
        assert not config or config in table.configs, (name, config)
        if prefix != "qabench." and not uses_ours:
            assert name.startswith("qabench/") and not table.restriction, name


@pytest.mark.parametrize("name", metric_names())
def test_metric_cards_link_to_source_and_dataset(name: str) -> None:
    text = card("metrics", name)
    (url,) = re.findall(r"^- Source code: <(.+)>$", text, re.MULTILINE)
    folder = url.removeprefix("https://github.com/qabench/qabench/tree/main/")
    assert folder != url and (ROOT / folder / f"{name}.py").is_file()
    if dataset_table(metric_class(name).BENCHMARK).restriction:
        assert f"`qabench/{metric_class(name).BENCHMARK}`" not in text


MAX_WORDS = 1_500


@pytest.mark.parametrize("path", generate.CARDS, ids=lambda path: path.parent.name)
def test_cards_are_read_in_minutes(path: Path) -> None:
    """Code, tables and metadata do not count: the rest is on the site."""
    text = path.read_text(encoding="utf-8").split("---\n", 2)[2]
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    lines = [line for line in prose.splitlines() if not line.startswith("|")]
    assert len(" ".join(lines).split()) <= MAX_WORDS
