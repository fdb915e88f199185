"""BibTeX entries of benchmarks, metrics and qabench."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from qabench.adapters.metric import MetricModule
from qabench.errors import unknown_name
from qabench.evaluation.signature import version
from qabench.loading_scripts import benchmark_names, citation
from qabench.metrics import metric_module, metric_names

QABENCH = """@software{{qabench,
  title = {{qabench}},
  author = {{{{The qabench developers}}}},
  version = {{{version}}},
  url = {{https://github.com/qabench/qabench}},
}}
"""


def bibtex(names: Iterable[str] = ()) -> str:
    """Return the BibTeX entries of benchmarks and metrics without duplicates, and the entry of this version of qabench.

    Without ``names``, all benchmarks are cited. A metric has the entry of its benchmark and those
    of its additional sources. Raises InputError for an unknown name.
    """
    entries = dict.fromkeys(
        entry for name in (list(names) or benchmark_names()) for entry in _entries(name)
    )
    return "\n".join([*entries, QABENCH.format(version=version())])


def _entries(name: str) -> Iterator[str]:
    name = name.removeprefix("qabench/")
    if name in benchmark_names():
        if entry := citation(name).strip():
            yield f"{entry}\n"
    elif name in metric_names():
        kind = metric_class(name)
        yield from _entries(kind.BENCHMARK)
        if kind.CITATION:
            yield kind.CITATION.strip() + "\n"
    else:
        raise unknown_name(
            "unknown benchmark or metric", name, [*benchmark_names(), *metric_names()]
        )


def metric_class(name: str) -> type[MetricModule]:
    """Return the class of a metric, by its name."""
    module = metric_module(name)
    kinds = [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, MetricModule)
    ]
    return next(kind for kind in kinds if kind is not MetricModule)
