"""The generated parts of dataset and metric cards; ``docs/generate.py`` writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from qabench.benchmarks import benchmark
from qabench.hub.cards import NO_LICENSE, license_of
from qabench.loading_scripts import FOLDER as DATASETS
from qabench.loading_scripts import citation, dataset_table, source_table
from qabench.loading_scripts.published import LEADERBOARD, PublishedScore
from qabench.metrics import metric_class

REPOSITORY = "https://github.com/qabench/qabench"
LANGUAGES = {"en": "English"}
BEST = 5  # systems per table in the card of a metric
DERIVED = (".precision", ".recall")  # columns of which a card shows the F-measure alone

CREATIVE_COMMONS = "https://creativecommons.org/licenses"
# The Hub's identifier of a license -> its name, and the URL of its terms.
LICENSES = {
    "cc-by-sa-4.0": ("CC BY-SA 4.0", f"{CREATIVE_COMMONS}/by-sa/4.0/"),
    "cc-by-nc-sa-4.0": ("CC BY-NC-SA 4.0", f"{CREATIVE_COMMONS}/by-nc-sa/4.0/"),
    "mit": ("MIT", "https://opensource.org/license/mit"),
}


def dataset_parts(name: str) -> dict[str, Callable[..., str]]:
    """Name of a part -> the function that writes it, for the card of a dataset."""
    return {
        "details": partial(_details, name),
        "sources": partial(_sources, name),
        "results": partial(results, name),
        "citation": lambda: _code("bibtex", citation(name)),
    }


def metric_parts(name: str) -> dict[str, Callable[..., str]]:
    """The same for the card of a metric."""
    kind = metric_class(name)
    return {
        "values": lambda *metrics: results(kind.BENCHMARK, *metrics, best=BEST),
        "examples": lambda: _code("pycon", _examples(kind.INPUTS)),
        "citation": lambda: _code(
            "bibtex", f"{citation(kind.BENCHMARK).strip()}\n\n{kind.CITATION.strip()}"
        ),
        "references": lambda: _references(name, kind.BENCHMARK, kind.URLS),
    }


def results(name: str, *metrics: str, best: int | None = None) -> str:
    """Published results of a benchmark: one table per config and setting, the best system first.

    Args:
        name: the benchmark.
        *metrics: names of its metrics, one column each; all with published values by default, but ``DERIVED``.
        best: the number of systems that are shown; None for all.
    """
    of = benchmark(name)
    scores = [score for score in of.published() if not score.metric.endswith(DERIVED)]
    shown = list(
        dict.fromkeys(score.metric for score in scores if not metrics or score.metric in metrics)
    )
    if not shown:
        return (
            "No values are included: the authors' results are in their paper, and this project has no "
            "machine-readable copy of them."
        )
    tables = [
        _results_table(of.score_spec, group, shown, title, best)
        for title, group in _groups(scores, shown[0])
        if _any_of(group, shown)
    ]
    return "\n\n".join([*tables, _source(name)])


def _groups(
    scores: Sequence[PublishedScore], ranked_by: str
) -> Iterator[tuple[str, list[PublishedScore]]]:
    """Yield the scores of each table with its title.

    Systems are ranked by one score. If judges gave it, each judge has a table of its own.
    """
    keys = dict.fromkeys((score.config, score.setting) for score in scores)
    for config, setting in keys:
        title = f"Config `{config}`" + (f", {setting}" if setting else "")
        table = [score for score in scores if (score.config, score.setting) == (config, setting)]
        judges = sorted({score.judge for score in table if score.metric == ranked_by and score.judge})
        if not judges:
            yield title, table
        for judge in judges:
            of_judge = [score for score in table if score.judge == judge]
            yield f"{title}, judged by `{judge}`", of_judge


def _any_of(scores: Sequence[PublishedScore], metrics: Sequence[str]) -> bool:
    return any(one.metric in metrics for one in scores)


def _results_table(
    metric: Callable[[str], Any],
    scores: Sequence[PublishedScore],
    metrics: Sequence[str],
    title: str,
    best: int | None,
) -> str:
    systems: dict[str, dict[str, float]] = {}
    for one in scores:
        systems.setdefault(one.system, {})[one.metric] = one.value
    first = metrics[0]
    # The table of a judge says whose it is in the title.
    judges = {
        score.system: f"`{score.judge}`"
        for score in scores
        if score.judge and score.metric in metrics[1:]
    }
    order = sorted(systems, key=lambda system: -systems[system].get(first, float("-inf")))
    lines = [
        "| system | "
        + " | ".join([metric(name).title for name in metrics] + ["judge"] * bool(judges))
        + " |",
        "|---|" + "--:|" * len(metrics) + "---|" * bool(judges),
        *(
            f"| {system} | "
            + " | ".join(
                [_value(systems[system].get(name)) for name in metrics]
                + [judges.get(system, "")] * bool(judges)
            )
            + " |"
            for system in order[:best]
        ),
    ]
    if best is not None and best < len(order):
        title += f", the best {best} of {len(order)} systems"
    return f"{title}:\n\n" + "\n".join(lines)


def _value(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _source(name: str) -> str:
    dataset = f"Config `{LEADERBOARD}` of `qabench/{name}`"
    if dataset_table(name).restriction:  # never on the Hub
        dataset = f'`qabench.load_dataset("{name}", "{LEADERBOARD}")`'
    return f"Published by the authors; scores are fractions. {dataset} has all digits and the source of each value."


def _details(name: str) -> str:
    from huggingface_hub import metadata_load

    data = metadata_load(DATASETS / name / "README.md") or {}
    languages = ", ".join(LANGUAGES.get(code, code) for code in data["language"])
    return "\n".join(
        [
            f"- **Curated by:** {_authors(citation(name))}",
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
    repositories = dict.fromkeys(file.repo for file in source_table(name).values())
    lines = [f"- **Repository:** <https://github.com/{repository}>" for repository in repositories]
    if paper := re.search(r"https://arxiv\.org/\S+?(?=})", citation(name)):
        lines.append(f"- **Paper:** <{paper[0]}>")
    return "\n".join(lines)


def _references(metric: str, name: str, urls: Sequence[str]) -> str:
    lines = [f"- <{url}>" for url in urls]
    if dataset_table(name).restriction:
        dataset = f'`qabench.load_dataset("{name}")` (not on the Hub: its license does not allow it)'
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
    """The doctest of a metric, without its indentation."""
    lines = documentation.partition("Examples:\n")[2].rstrip().splitlines()
    return "\n".join(line.removeprefix("    ") for line in lines) + "\n"


def _code(language: str, text: str) -> str:
    return f"```{language}\n{text.strip()}\n```"


def card_parts(card: Path) -> dict[str, Callable[..., str]]:
    """The parts of the card of a dataset or of a metric, by its folder."""
    parts = dataset_parts if card.parents[1].name == "loading_scripts" else metric_parts
    return parts(card.parent.name)
