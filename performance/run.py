"""Measures qabench next to the official code and the alternatives, and writes RESULTS.md.

    python performance/run.py [NAME ...] [--rounds 5] [--largest 100000]

A script runs in a process of its own. Its alternatives take turns: each round runs every one of
them once, so that other work on the machine slows all of them. Outputs are compared in each round,
and a difference is an error. The results of scripts that are not named are kept.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import platform
import statistics
import subprocess
import sys
from collections import defaultdict
from importlib.metadata import version
from typing import Any

from cases import HERE, Case, cases_of, script_names, timed

from qabench.io.workers import processors

OURS = "qabench"
RAW = HERE / "results.json"
PACKAGES = (
    "bm25s datasets evaluate fanoutqa inspect-ai numba numpy rank-bm25 rouge-score rouge-score-rs scipy spacy tantivy "
    "torch transformers"
)
UNITS = ((1, "s"), (1e-3, "ms"), (1e-6, "µs"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"scripts: {', '.join(script_names())}; default: all",
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--largest", type=int, default=100_000, help="the largest size of scripts with sizes"
    )
    parser.add_argument(
        "--note", default="", help="a sentence about the conditions, which is printed"
    )
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure, arguments.rounds, arguments.largest)))
        return
    if unknown := set(arguments.names) - set(script_names()):
        parser.error(f"unknown: {', '.join(unknown)}; allowed: {', '.join(script_names())}")
    failed = []
    for name in arguments.names or script_names():
        command = [sys.executable, __file__, "--measure", name, "--rounds", str(arguments.rounds)]
        done = subprocess.run(
            [*command, "--largest", str(arguments.largest)], stdout=subprocess.PIPE, text=True
        )
        if done.returncode:
            failed.append(name)
            continue
        # read now: another run may have written its results meanwhile
        results = json.loads(RAW.read_text(encoding="utf-8")) if RAW.is_file() else {}
        results[name] = {
            "machine": machine(arguments.note),
            **json.loads(done.stdout.splitlines()[-1]),
        }
        RAW.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        (HERE / "RESULTS.md").write_text(document(results), encoding="utf-8")
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}; their results are unchanged")


def measure(script: str, rounds: int, largest: int) -> dict[str, Any]:
    """The times of all cases of a script, and its table in Markdown."""
    rows = []
    for size, case in cases_of(script, largest):
        print(
            f"{script}: {case.name}" + (f", {size:,}" if size else ""), file=sys.stderr, flush=True
        )
        rows.append(
            {
                "case": case.name,
                "size": size,
                "compared": bool(case.same),
                **rounds_of(case, rounds),
            }
        )
    module = importlib.import_module(script)
    table = module.table(largest, rounds).formatted("markdown") if hasattr(module, "table") else ""
    return {"rows": rows, "table": table}


def rounds_of(case: Case, rounds: int) -> dict[str, Any]:
    """The seconds of each way, round by round. Raises SystemExit if outputs differ."""
    seconds: dict[str, list[float]] = defaultdict(list)
    notes: dict[str, str] = {}
    for work in [
        case.ours,
        *(work for name, work in case.others.items() if name not in case.once),
    ] * case.warm:
        work()
    for number in range(rounds):
        ways = {OURS: case.ours} | {
            name: work for name, work in case.others.items() if not (number and name in case.once)
        }
        outputs = {}
        for name in list(ways)[:: -1 if number % 2 else 1]:
            result = timed(ways[name])
            seconds[name].append(result.seconds)
            outputs[name], notes[name] = result.output, result.note
        for name in ways:
            if name != OURS and case.same and not case.same(outputs[OURS], outputs[name]):
                raise SystemExit(f"{case.name}: the output of {name} differs")
    return {"seconds": seconds, "notes": notes}


def machine(note: str) -> str:
    """The machine, its load, the date and the versions, in one paragraph."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = next(
            (line.partition(":")[2].strip() for line in file if line.startswith("model name")),
            platform.machine(),
        )
    packages = ", ".join(
        f"{name} {number}" for name in PACKAGES.split() if (number := _version(name))
    )
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{datetime.date.today()}; {cpu}, {processors()} cores, load averages {load}; "
        f"Python {platform.python_version()}, {packages}. {note}"
    ).strip()


def _version(package: str) -> str:
    try:
        return version(package)
    except ModuleNotFoundError:
        return ""


def document(results: dict[str, Any]) -> str:
    """RESULTS.md."""
    parts = [
        "# Results\n\nWritten by `python performance/run.py`; [README.md](README.md) describes the scripts. Times are "
        "medians with quartiles over rounds in which all ways take turns. A ratio is the median over rounds of the "
        "alternative's time divided by qabench's.\n"
    ]
    for name, result in sorted(results.items()):
        parts.append(f"## {name}\n\n{result['machine']}\n")
        if result["rows"]:
            parts.append("\n".join(_lines(result["rows"])) + "\n")
        if result["table"]:
            parts.append(result["table"].strip() + "\n")
    return "\n".join(parts)


def _lines(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        "| | size | ratio | qabench | alternative | its time | outputs |",
        "|---|--:|--:|--:|---|--:|---|",
    ]
    for row in rows:
        size = f"{row['size']:,}" if row["size"] else ""
        ours = row["seconds"][OURS]
        own = _shown(ours, row["notes"].get(OURS, ""))
        others = {name: values for name, values in row["seconds"].items() if name != OURS}
        if not others:
            lines.append(f"| {row['case']} | {size} | | {own} | | | |")
        for name, values in others.items():
            pairs = (
                zip(values, ours, strict=True)
                if len(values) == len(ours)
                else [(values[0], statistics.median(ours))]
            )
            ratio = statistics.median(other / own_seconds for other, own_seconds in pairs)
            equal = "equal" if row["compared"] else ""
            theirs = _shown(values, row["notes"].get(name, ""))
            lines.append(
                f"| {row['case']} | {size} | {_number(ratio)}x | {own} | {name} | {theirs} | {equal} |"
            )
    return lines


def _shown(values: list[float], note: str) -> str:
    middle = statistics.median(values)
    scale, unit = next(((scale, unit) for scale, unit in UNITS if middle >= scale), UNITS[-1])
    text = f"{_number(middle / scale)} {unit}"
    if len(values) > 1:
        low, _, high = statistics.quantiles(values, n=4, method="inclusive")
        text += f" ({_number(low / scale)} to {_number(high / scale)})"
    return f"{text}, {note}" if note else text


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main()
