"""The report's charts as Vega-Lite specifications, made with altair; the page gives them data, theme and width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qabench.errors import MissingExtra
from qabench.report.names import OUTCOME_NAMES

ROWS = "rows"  # the name under which the page hands a chart its rows
STEP = 14  # pixels from one run's dot to the next


def _altair() -> Any:
    try:
        import altair
    except ImportError:
        raise MissingExtra('reports need altair and vl-convert-python: pip install "qabench[report]"') from None
    return altair


def _spec(chart: Any) -> dict[str, Any]:
    spec: dict[str, Any] = chart.to_dict()
    spec.pop("config", None)  # the page's themes say how it looks
    return spec


def _run_colour(alt: Any, runs: Sequence[str]) -> Any:
    legend = alt.Legend(title=None, orient="top") if len(runs) > 1 else None
    return alt.Color("run:N", sort=list(runs), scale=alt.Scale(domain=list(runs)), legend=legend)


def _side(alt: Any, field: str, order: Sequence[str], **options: Any) -> Any:
    axis = alt.Axis(domain=False, ticks=False, **options)
    return alt.Y(f"{field}:N", sort=list(order), title=None, axis=axis, scale=alt.Scale(paddingInner=0.25))


def whiskers(runs: Sequence[str], y: str, order: Sequence[str], tooltip: Sequence[str]) -> dict[str, Any]:
    """Dots at the means with 95 % intervals as whiskers; a line of dots for each value of ``y``, one dot a run.

    Args:
        runs: their labels, in order. y: the field whose values stand at the side, in ``order``.
        tooltip: fields to tell besides the mean and its interval.
    """
    alt = _altair()
    scale = alt.Scale(domain=[0, 1])  # the page gives others to figures that are no fractions
    base = alt.Chart(alt.NamedData(ROWS)).encode(
        y=_side(alt, y, order),
        yOffset=alt.YOffset("run:N", sort=list(runs)),
        color=_run_colour(alt, runs),
        tooltip=[alt.Tooltip(f"{name}:N", title=name) for name in tooltip]
        + [alt.Tooltip("mean:Q", format=".3f"), alt.Tooltip("interval:N", title="95 % interval"), "n:Q"],
    )
    whisker = base.mark_rule(strokeWidth=1.75).encode(x=alt.X("low:Q", scale=scale, title=None), x2="high:Q")
    dot = base.mark_point(filled=True, size=70, opacity=1).encode(x="mean:Q", shape=_run_shape(alt, runs))
    return _spec(alt.layer(whisker, dot).properties(width="container", height=_height(alt, runs)))


def _run_shape(alt: Any, runs: Sequence[str]) -> Any:
    legend = alt.Legend(title=None, orient="top") if len(runs) > 1 else None
    return alt.Shape("run:N", sort=list(runs), scale=alt.Scale(domain=list(runs)), legend=legend)


def _height(alt: Any, runs: Sequence[str]) -> Any:
    return alt.Step(STEP, **{"for": "offset"}) if len(runs) > 1 else alt.Step(24)


def outcomes(runs: Sequence[str]) -> dict[str, Any]:
    """Bars of what became of the questions of each run: right, partly right, wrong, no score."""
    alt = _altair()
    bars = (
        alt.Chart(alt.NamedData(ROWS))
        .mark_bar(height=16)
        .encode(
            x=alt.X("share:Q", stack="zero", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%", title=None)),
            y=_side(alt, "run", runs),
            # Ordinal, because themes have a range of colours of their own for these.
            color=alt.Color("name:O", sort=list(OUTCOME_NAMES), legend=alt.Legend(title=None, orient="top")),
            order="order:Q",
            tooltip=["run:N", alt.Tooltip("name:N", title="outcome"), "n:Q", alt.Tooltip("share:Q", format=".1%")],
        )
    )
    return _spec(bars.properties(width="container", height=alt.Step(26)))


def curve(runs: Sequence[str], largest: int) -> dict[str, Any]:
    """A figure over the cutoff k, a line a run, its 95 % interval as a band."""
    alt = _altair()
    ticks = alt.Axis(tickMinStep=1, format="d", title="k", grid=False)
    scale = alt.Scale(domain=[1, max(2, largest)], nice=False)
    base = alt.Chart(alt.NamedData(ROWS)).encode(
        x=alt.X("k:Q", axis=ticks, scale=scale),
        color=_run_colour(alt, runs),
        tooltip=["run:N", "k:Q", alt.Tooltip("mean:Q", format=".3f"), alt.Tooltip("interval:N", title="95 % interval")],
    )
    band = base.mark_area(opacity=0.14).encode(
        y=alt.Y("low:Q", scale=alt.Scale(domain=[0, 1]), title=None), y2="high:Q"
    )
    line = base.mark_line(strokeWidth=2).encode(y="mean:Q")
    dots = base.mark_point(filled=True, size=45, opacity=1).encode(y="mean:Q", shape=_run_shape(alt, runs))
    return _spec(alt.layer(band, line, dots).properties(width="container", height=260))


def differences(order: Sequence[str]) -> dict[str, Any]:
    """The differences of pairs of runs with their intervals and a line at none; full dots are significant."""
    alt = _altair()
    base = alt.Chart(alt.NamedData(ROWS)).encode(
        y=_side(alt, "pair", order, labelExpr="split(datum.label, '\\n')"),
        tooltip=[
            "pair:N",
            alt.Tooltip("difference:Q", format="+.3f"),
            alt.Tooltip("interval:N", title="95 % interval"),
            alt.Tooltip("corrected_p:Q", format=".4f", title="corrected p"),
        ],
    )
    zero = alt.Chart(alt.NamedData(ROWS)).mark_rule(strokeDash=[4, 3]).encode(x=alt.datum(0))
    scale = alt.Scale(zero=True, nice=True)
    whisker = base.mark_rule(strokeWidth=1.75).encode(x=alt.X("low:Q", scale=scale, title=None), x2="high:Q")
    ring = base.mark_point(size=75, strokeWidth=1.75, shape="circle").encode(x="difference:Q")
    dot = base.transform_filter("datum.significant").mark_point(size=75, filled=True, opacity=1, shape="circle")
    return _spec(
        alt.layer(zero, whisker, ring, dot.encode(x="difference:Q")).properties(width="container", height=alt.Step(40))
    )
