"""The report's page: one HTML file that contains its data, styles and script, and works offline."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from qabench.data.rows import Json
from qabench.errors import InputError, MissingExtra
from qabench.evaluation import Evaluation
from qabench.evaluation.signature import version
from qabench.io.escaping import visible
from qabench.io.files import write_json, write_text
from qabench.io.redaction import without_folders
from qabench.io.tables import Table
from qabench.report import view
from qabench.report.section import Section, sections_of
from qabench.report.view import bounded

PAGE, NUMBERS = "index.html", "report.json"
# Concatenated in this order into one script. Each defines what the later ones use.
SCRIPTS = (
    *("dom", "text", "state", "data", "exports", "svg", "charts", "scores", "comparison", "groups"),
    *("filters", "list", "findings", "detail", "keys", "main"),
)


def build_report(runs: Sequence[Evaluation], out: Path, tables: Sequence[Table] = ()) -> Path:
    """Write a report of evaluations as a web page, and its numbers as report.json next to it.

    Evaluations on the same config are compared with each other. Each config has a section. Runs
    that were resumed by another run are left out. The output is reproducible. Strings of more than
    20,000 characters and long conversations are shortened, with a note.

    Args:
        runs: at least one, each with records.
        out: the folder. It is created if needed, and a report in it is replaced.
        tables: further tables, which are shown first.

    Returns:
        The path of the page, a self-contained file.

    Raises:
        InputError: there is no evaluation, one has no records, or logs of another task have
            different questions.
        MissingExtra: jinja2 is not installed (extra ``report``).
        QabenchError: the folder cannot be written.
    """
    if not runs:
        raise InputError("there is nothing to report; give at least one run with answers")
    sections = sections_of(runs)
    *names, last = dict.fromkeys(section.benchmark.title for section in sections)
    title = f"{', '.join(names)}{' and ' if names else ''}{last} report"
    page = out / PAGE
    numbers = _numbers(title, sections)
    text = _page(title, sections, numbers, tables)
    write_json(out / NUMBERS, numbers)
    write_text(page, text)
    return page


def _page(title: str, sections: Sequence[Section], numbers: Json, tables: Sequence[Table]) -> str:
    data = {"title": title, "sections": list(map(view.section_data, sections))}
    parts = "\n".join(_static(f"{name}.js") for name in SCRIPTS)
    app = f'(async () => {{\n"use strict";\n{parts}}})();'
    text: str = _template().render(
        title=title,
        version=version(),
        sections=sections,
        tables=tables,
        view=view,
        models=dict.fromkeys(run.name for section in sections for run in section.runs.values()),
        data=data,
        numbers=numbers,
        style=_static("page.css"),
        policy=_policy(app),
        app=app,
    )
    return text.translate(_UNFIT)


# Characters that HTML cannot contain are replaced. In the page's data they are escaped instead.
_UNFIT = dict.fromkeys([0, *range(0x7F, 0xA0), *range(0xD800, 0xE000)], "\ufffd")
# Control characters are replaced by their visible symbols.
_UNFIT |= {number: chr(0x2400 + number) for number in range(1, 32) if chr(number) not in "\t\n\r"}


def _numbers(title: str, sections: Sequence[Section]) -> Json:
    """Return report.json: for each section its runs and its numbers."""
    numbers = []
    for section in sections:
        numbers.append(
            {
                "benchmark": section.benchmark.name,
                "config": section.config,
                "findings": section.findings,
                "superseded": list(section.superseded),
                "runs": [_run(section, label) for label in section.runs],
                **section.as_dict(),
            }
        )
    return {
        "title": title,
        "qabench": version(),
        "confidence": 0.95,
        "sections": numbers,
    }


def _run(section: Section, label: str) -> Json:
    run = section.runs[label]
    names = (
        "path",
        "task",
        "setting",
        "name",
        "model",
        "created",
        "status",
        "expected",
        "available",
    )
    numbers = {
        "label": label,
        **{name: getattr(run, name) for name in names},
        "counts": run.counts(),
        "replies": run.replies(),
        "signatures": dict(run.signatures),
        "arguments": bounded(run.arguments),
        "deviations": {name: run.deviations(score) for name, score in run.scores().items()},
    }
    if run.corrections:
        numbers["corrected"] = {
            correction.score.name: correction.as_dict() for correction in run.corrections
        }
    return numbers


def _packed(value: Any) -> str:
    # The page's data are new lists and dicts, none of which contains itself.
    text = json.dumps(value, separators=(",", ":"), default=str, check_circular=False)
    data = text.encode("ascii")
    return base64.b64encode(gzip.compress(data, 6, mtime=0)).decode("ascii")


def _static(name: str) -> str:
    return resources.files("qabench.report").joinpath("static", name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    """Return a content security policy that allows this script only."""
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    allowed = f"script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data: blob:"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def _shown(value: Any) -> Any:
    """Return a value for the page, with control characters of strings as escapes."""
    # ``Markup`` is HTML that this package wrote.
    return visible(value) if type(value) is str else value


def _template() -> Any:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise MissingExtra('reports need jinja2: pip install "qabench[report]"') from None
    loader = PackageLoader("qabench.report", "static")
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.finalize = _shown
    environment.filters["score"] = "{:.3f}".format
    environment.filters["shared"] = without_folders
    environment.filters["packed"] = _packed
    return environment.get_template("page.html")
