"""The generated parts of dataset and metric cards, which ``docs/generate.py`` writes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

from qabench.adapters.metric import SHARED_ARGUMENTS, MetricModule
from qabench.benchmarks import benchmark
from qabench.data.rows import grouped
from qabench.hub.cards import NO_LICENSE, license_of
from qabench.loading_scripts import FOLDER as DATASETS
from qabench.loading_scripts import dataset_table
from qabench.loading_scripts.published import LEADERBOARD, PublishedScore
from qabench.metrics import metric_class

REPOSITORY = "https://github.com/qabench/qabench"
LANGUAGES = {"en": "English"}
# The card of a metric shows so many systems per table.
BEST_SYSTEMS = 5
# Cards show the F-measure alone.
DERIVED = (".precision", ".recall")
# An argument in a docstring, whose further lines are indented.
SHARED_ARGUMENT = re.compile(r"^    (\w+): (.*(?:\n     .*)*)", re.MULTILINE)

CREATIVE_COMMONS = "https://creativecommons.org/licenses"
# By the Hub's identifier of a license, its name and the URL of its terms.
LICENSES = {
    "cc-by-sa-4.0": ("CC BY-SA 4.0", f"{CREATIVE_COMMONS}/by-sa/4.0/"),
    "cc-by-nc-sa-4.0": ("CC BY-NC-SA 4.0", f"{CREATIVE_COMMONS}/by-nc-sa/4.0/"),
    "mit": ("MIT", "https://opensource.org/license/mit"),
}


def dataset_parts(name: str) -> dict[str, Callable[..., str]]:
    """Return the functions that write the parts of a dataset's card, by name of the part."""
    return {
        "details": partial(_details, name),
        "sources": partial(_sources, name),
        "results": partial(results, name),
        "citation": lambda: _code("bibtex", dataset_table(name).citation),
    }


def metric_parts(name: str) -> dict[str, Callable[..., str]]:
    """Return the functions that write the parts of a metric's card, by name of the part."""
    kind = metric_class(name)

    def citation() -> str:
        entries = (dataset_table(kind.BENCHMARK).citation, kind.CITATION)
        return _code("bibtex", "\n\n".join(entry.strip() for entry in entries))

    return {
        "values": lambda *metrics: results(kind.BENCHMARK, *metrics, best=BEST_SYSTEMS),
        "shared-arguments": _shared_arguments,
        "examples": lambda: _code("pycon", _examples(kind.INPUTS)),
        "citation": citation,
        "references": lambda: _references(name, kind.BENCHMARK, kind.URLS),
    }


def results(name: str, *metrics: str, best: int | None = None) -> str:
    """Return tables of a benchmark's published results, one per config and setting.

    The best system is first.

    Args:
        name: the benchmark.
        *metrics: names of its metrics, one column each. By default all with published values, but
            ``DERIVED``.
        best: the number of systems that are shown. None for all.
    """
    scored = benchmark(name)
    scores = []
    # A dict as an ordered set.
    with_values: dict[str, None] = {}
    for score in scored.numbers().published():
        if not score.metric.endswith(DERIVED):
            scores.append(score)
            with_values[score.metric] = None
    shown = [metric for metric in with_values if not metrics or metric in metrics]
    if not shown:
        return (
            "No values are included: the authors' results are in their paper, and this project has no "
            "machine-readable copy of them."
        )
    tables = []
    for title, group in _groups(scores, shown[0]):
        if any(score.metric in shown for score in group):
            tables.append(_results_table(scored.score_spec, group, shown, title, best))
    return "\n\n".join([*tables, _source(name)])


def _groups(
    scores: Sequence[PublishedScore], ranked_by: str
) -> Iterator[tuple[str, list[PublishedScore]]]:
    """Yield the scores of each table with its title.

    Systems are ranked by one score. Verdicts of different judges cannot be ranked together, so each
    judge has a table.
    """
    tables = grouped(((score.config, score.setting), score) for score in scores)
    for (config, setting), table in tables.items():
        title = f"Config `{config}`"
        if setting:
            title += f", {setting}"
        ranked = [score for score in table if score.metric == ranked_by]
        judges = sorted({score.judge for score in ranked if score.judge})
        if not judges:
            yield title, table
        for judge in judges:
            of_judge = [score for score in table if score.judge == judge]
            yield f"{title}, judged by `{judge}`", of_judge


def _results_table(
    metric: Callable[[str], Any],
    scores: Sequence[PublishedScore],
    metrics: Sequence[str],
    title: str,
    best: int | None,
) -> str:
    systems: dict[str, dict[str, float]] = {}
    judges = {}
    for score in scores:
        systems.setdefault(score.system, {})[score.metric] = score.value
        # A table that is ranked by a judge's score names the judge in its title.
        if score.judge and score.metric in metrics[1:]:
            judges[score.system] = f"`{score.judge}`"
    first = metrics[0]
    order = sorted(systems, key=lambda system: -systems[system].get(first, float("-inf")))
    header = ["system", *(metric(name).title for name in metrics)]
    alignment = "|---|" + "--:|" * len(metrics)
    if judges:
        header.append("judge")
        alignment += "---|"
    lines = [_row(header), alignment]
    for system in order[:best]:
        cells = [system, *(_value(systems[system].get(name)) for name in metrics)]
        if judges:
            cells.append(judges.get(system, ""))
        lines.append(_row(cells))
    if best is not None and best < len(order):
        title += f", the best {best} of {len(order)} systems"
    return f"{title}:\n\n" + "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _value(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _source(name: str) -> str:
    dataset = f"Config `{LEADERBOARD}` of `qabench/{name}`"
    if dataset_table(name).restriction:
        # The dataset is never on the Hub.
        dataset = f'`qabench.load_dataset("{name}", "{LEADERBOARD}")`'
    return f"Published by the authors; scores are fractions. {dataset} has all digits and the source of each value."


def _details(name: str) -> str:
    from huggingface_hub import metadata_load

    data = metadata_load(DATASETS / name / "README.md") or {}
    languages = ", ".join(LANGUAGES.get(code, code) for code in data["language"])
    return "\n".join(
        [
            f"- **Curated by:** {_authors(dataset_table(name).citation)}",
            "- **Shared by:** the qabench project, which converts the authors' files and changes no text",
            f"- **Language(s) (NLP):** {languages}",
            f"- **License:** {_license(name, data)}",
        ]
    )


def _license(name: str, data: dict[str, Any]) -> str:
    if data["license"] not in NO_LICENSE:
        title, url = LICENSES[license_of(name)]
        return f"[{title}]({url})"
    return f"none stated; see [License](#license) and [its terms]({data['license_link']})"


def _sources(name: str) -> str:
    repositories = dict.fromkeys(file.repo for file in dataset_table(name).sources.values())
    lines = [f"- **Repository:** <https://github.com/{repository}>" for repository in repositories]
    if paper := re.search(r"https://arxiv\.org/\S+?(?=})", dataset_table(name).citation):
        lines.append(f"- **Paper:** <{paper[0]}>")
    return "\n".join(lines)


def _shared_arguments() -> str:
    """Return the table of the arguments that all metrics have, from their common docstring."""
    parameters = signature(MetricModule._compute).parameters
    lines = ["| argument of every metric | default | meaning |", "|---|---|---|"]
    for name, meaning in SHARED_ARGUMENT.findall(SHARED_ARGUMENTS):
        text = re.sub(r'("\w+")', r"`\1`", " ".join(meaning.split()).rstrip("."))
        default = str(parameters[name].default)
        if isinstance(parameters[name].default, str):
            default = f'"{default}"'
        lines.append(_row([f"`{name}`", f"`{default}`", text]))
    return "\n".join(lines)


def _references(metric: str, name: str, urls: Sequence[str]) -> str:
    lines = [f"- <{url}>" for url in urls]
    if dataset_table(name).restriction:
        dataset = (
            f'`qabench.load_dataset("{name}")` (not on the Hub: its license does not allow it)'
        )
    else:
        dataset = f"`qabench/{name}`"
    lines.append(f"- Dataset: {dataset}")
    lines.append(f"- Metrics in Python and on the command line: `qabench score {name} FILE`")
    lines.append(f"- Source code: <{REPOSITORY}/tree/main/metrics/{metric}>")
    return "\n".join(lines)


def _authors(entry: str) -> str:
    (names,) = re.findall(r"author = \{(.+?)\},\n", entry, re.DOTALL)[:1]
    return ", ".join(" ".join(reversed(name.split(", "))) for name in re.split(r"\s+and\s+", names))


def _examples(documentation: str) -> str:
    """Return the doctest of a metric, without its indentation."""
    _, _, examples = documentation.partition("Examples:\n")
    lines = examples.rstrip().splitlines()
    return "\n".join(line.removeprefix("    ") for line in lines) + "\n"


def _code(language: str, text: str) -> str:
    return f"```{language}\n{text.strip()}\n```"


def card_parts(card: Path) -> dict[str, Callable[..., str]]:
    """Return the parts of the card of a dataset or of a metric, by its folder."""
    parts = dataset_parts if card.parents[1].name == "loading_scripts" else metric_parts
    return parts(card.parent.name)
