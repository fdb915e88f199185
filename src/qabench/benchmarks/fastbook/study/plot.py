"""A plot of the scores of each method for all questions and by chapter, with intervals and ceilings."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qabench.benchmarks.fastbook.study.report import label
from qabench.benchmarks.fastbook.study.study import ALL, Outcome
from qabench.errors import InputError, MissingExtra
from qabench.io.files import replacing

# The colors of Okabe and Ito, which are distinguishable with any kind of color vision; markers for grayscale.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
SPREAD = 0.6  # the share of the space between two groups that the methods occupy
HALF = 0.45  # half the length of a ceiling's line
NAMES = {"mrr": "Answer Component MRR", "recall": "Answer Component Recall"}


def draw(outcomes: Sequence[Outcome], path: Path) -> None:
    """Writes the plot, atomically, in the format of the path's suffix, such as .png, .svg or .pdf.

    Raises:
        MissingExtra: matplotlib is not installed.
        InputError: the path has no suffix, or matplotlib cannot write this format.
        QabenchError: the file cannot be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("--plot needs matplotlib: pip install 'qabench[plot]'") from None
    columns = list(outcomes[0].columns)
    figure = Figure(figsize=(9, 6.5), layout="constrained")
    panels = figure.subplots(len(columns), 1, sharex=True)
    for panel, column in zip(panels, columns, strict=True):
        _panel(panel, outcomes, column)
    about = outcomes[0].study.about
    figure.suptitle(
        f"fastbook-benchmark ({about['config']}), chunks of {about['chunk_size']} tokens ({about['chunker']})"
    )
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(3, len(labels)), frameon=False)
    _save(figure, path)


def _panel(panel: Any, outcomes: Sequence[Outcome], column: str) -> None:
    groups = list(outcomes[0].study.groups)
    step = SPREAD / max(1, len(outcomes) - 1) if len(outcomes) > 1 else 0.0
    for number, outcome in enumerate(outcomes):
        intervals = [outcome.intervals[group][column] for group in groups]
        means = [interval.mean for interval in intervals]
        errors = [
            [interval.mean - interval.low for interval in intervals],
            [interval.high - interval.mean for interval in intervals],
        ]
        places = [i + number * step - step * (len(outcomes) - 1) / 2 for i in range(len(groups))]
        style = {"color": COLORS[number % len(COLORS)], "fmt": MARKERS[number % len(MARKERS)]}
        panel.errorbar(places, means, yerr=errors, capsize=2, markersize=5, elinewidth=1, label=label(outcome), **style)
    ceilings = outcomes[0].study.ceilings(outcomes[0].k)
    for i, group in enumerate(groups):
        ends = [i - HALF, i + HALF]
        named = "highest possible" if i == 0 else None
        panel.plot(ends, [ceilings[group][column]] * 2, color="0.45", linewidth=1.2, linestyle="--", label=named)
    panel.axvspan(-0.5, 0.5, color="0.94", zorder=0)  # all questions
    panel.set_xticks(range(len(groups)), [_tick(outcomes[0], group) for group in groups])
    panel.set_xlim(-0.5, len(groups) - 0.5)
    panel.set_ylim(-0.02, 1.02)
    panel.grid(axis="y", color="0.88", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
    name, _, k = column.partition("@")
    panel.set_ylabel(f"{NAMES[name]}@{k}\n(95% interval)")


def _tick(outcome: Outcome, group: str) -> str:
    count = len(outcome.study.groups[group])
    return f"{'all' if group == ALL else f'chapter {group}'}\n{count} questions"


def _save(figure: Any, path: Path) -> None:
    suffix = path.suffix.removeprefix(".").lower()
    formats = sorted(figure.canvas.get_supported_filetypes())
    if suffix not in formats:
        raise InputError(f"cannot draw {path}: its suffix must be one of .{', .'.join(formats)}")
    data = io.BytesIO()
    figure.savefig(data, format=suffix, dpi=150)
    with replacing(path) as file:
        file.write(data.getvalue())
