"""The report's page: one HTML file with its data, styles, scripts and Vega inside, that asks nothing of a network."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from qabench.errors import MissingExtra
from qabench.evaluation import Evaluation
from qabench.files import write_json, write_text
from qabench.report import view
from qabench.report.analysis import Analysis, analyse
from qabench.report.names import figure_name, grouping_name, headline_name, headline_of
from qabench.report.records import bounded, questions_of, records_of
from qabench.report.sections import Section, sections_of
from qabench.signature import version

PAGE, NUMBERS = "index.html", "report.json"
# In this order they are one script; each defines what the later ones use.
SCRIPTS = ("dom", "text", "data", "exports", "filters", "list", "findings", "detail", "charts", "keys", "main")


def build_report(runs: Sequence[Evaluation], out: Path, title: str | None = None) -> Path:
    """Writes a report of runs as a web page, and its numbers as report.json next to it.

    Runs over the same config are compared with each other; several configs or benchmarks get a section each. The same
    runs give the same files. Texts longer than some ten thousand characters are shortened, and say so.

    Args:
        runs: one or more, each with records.
        out: the folder; it is made, and a report in it replaced.
        title: of the page; by default it names the benchmarks.

    Returns:
        The path of the page, which can be opened, mailed and put on any server as it is.

    Raises:
        InputError: no runs, or one without records.
        MissingExtra: altair, jinja2 or vl-convert is not installed (extra ``report``).
        QabenchError: the folder cannot be written.
    """
    sections = sections_of(runs)
    analyses = [analyse(section) for section in sections]
    *names, last = dict.fromkeys(section.title for section in sections)
    title = title or f"{', '.join(names)}{' and ' if names else ''}{last} report"
    page = out / PAGE
    text = _page(title, sections, analyses)
    write_json(out / NUMBERS, _numbers(title, sections, analyses))
    write_text(page, text)
    return page


def _page(title: str, sections: Sequence[Section], analyses: Sequence[Analysis]) -> str:
    shown = []
    for section, analysis in zip(sections, analyses, strict=True):
        shown.append(
            {
                "section": section,
                "analysis": analysis,
                "charts": view.charts_of(section, analysis),
                "figures": view.figures_of(analysis.scores),
                "compared": view.figures_of(analysis.pairs),
                "problems": view.problems_of(section),
                "runs": view.run_rows(section),
                "unlike": view.unlike(section),
                "scores": view.score_table(section, analysis),
                "breakdowns": [view.breakdown_table(one) for one in analysis.breakdowns],
                "records": [_packed(of) for of in records_of(section)],
            }
        )
    data = {"title": title, "shapes": view.SHAPES, "sections": [_data(one) for one in shown]}
    numbers = _numbers(title, sections, analyses)
    scripts = {"app": _app(), "vega": _vega()}
    text: str = _template().render(
        title=title,
        version=version(),
        sections=shown,
        shapes=view.SHAPES,
        figure_name=figure_name,
        data=_json(data),
        numbers=_json(numbers),
        style=_static("page.css"),
        policy=_policy(scripts.values()),
        **scripts,
    )
    return text.translate(_UNFIT)


# What an HTML file cannot hold; in the page's data such characters are escaped and reach the reader.
_UNFIT = dict.fromkeys([0, *range(0xD800, 0xE000)], "\ufffd")


def _data(shown: dict[str, Any]) -> dict[str, Any]:
    section: Section = shown["section"]
    questions = questions_of(section)
    records = [record for run in section.runs.values() for record in run.records]
    groupings = dict.fromkeys(name for question in questions for name in question["groups"])
    return {
        "key": section.key,
        "title": section.title,
        "benchmark": section.benchmark,
        "config": section.config,
        "headline": headline_name(headline_of(section.benchmark, section.runs.values())),
        "runs": [{"label": label, "setting": run.setting} for label, run in section.runs.items()],
        "figures": {name: figure_name(name) for record in records for name in record.scores},
        "groupings": [{"key": name, "name": grouping_name(name)} for name in groupings],
        "charts": {chart.id: chart.as_dict() for chart in shown["charts"]},
        "questions": questions,
    }


def _numbers(title: str, sections: Sequence[Section], analyses: Sequence[Analysis]) -> dict[str, Any]:
    """report.json: for each section its runs and its numbers."""
    names = ("path", "task", "setting", "model", "created", "status", "expected", "unofficial")
    return {
        "title": title,
        "qabench": version(),
        "confidence": 0.95,
        "sections": [
            {
                "benchmark": section.benchmark,
                "config": section.config,
                "runs": [
                    {"label": label}
                    | {name: getattr(run, name) for name in names}
                    | {"counts": run.counts(), "signatures": dict(run.signatures), "arguments": bounded(run.arguments)}
                    for label, run in section.runs.items()
                ],
                **analysis.as_dict(),
            }
            for section, analysis in zip(sections, analyses, strict=True)
        ],
    }


def _json(value: Any) -> str:
    """JSON that can stand in a script element, whatever its texts hold: ASCII alone, and no tag can begin or end."""
    text = json.dumps(value, separators=(",", ":"), default=str)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _packed(value: Any) -> str:
    data = json.dumps(value, separators=(",", ":"), default=str).encode("ascii")
    return base64.b64encode(gzip.compress(data, 6, mtime=0)).decode("ascii")


def _static(name: str) -> str:
    return resources.files("qabench.report").joinpath("static", name).read_text(encoding="utf-8")


def _app() -> str:
    parts = "\n".join(_static(f"{name}.js") for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}}})();'


@cache
def _vega() -> str:
    try:
        from vl_convert import javascript_bundle
    except ImportError:
        raise MissingExtra('reports need altair and vl-convert-python: pip install "qabench[report]"') from None
    bundle: str = javascript_bundle("window.vegaEmbed = vegaEmbed;")
    # The same strings in JavaScript, which the HTML parser cannot take for tags.
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _policy(scripts: Any) -> str:
    """A content security policy: these scripts and no other, nothing from anywhere."""
    digests = [base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii") for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"


def _template() -> Any:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise MissingExtra('reports need jinja2: pip install "qabench[report]"') from None
    loader = PackageLoader("qabench.report", "static")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["score"] = lambda value: f"{value:.3f}"
    return environment.get_template("page.html")
