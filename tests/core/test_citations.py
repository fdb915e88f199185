"""BibTeX of benchmarks, metrics and qabench."""

import re

from qabench import __version__
from qabench.benchmarks import benchmark_names
from qabench.citations import bibtex


def keys(text: str) -> list[str]:
    return re.findall(r"^@\w+\{([^,]+),$", text, re.MULTILINE)


def test_all_benchmarks_and_qabench_are_cited_once() -> None:
    cited = keys(bibtex())
    assert len(cited) == len(set(cited)) == len(benchmark_names()) + 1 and cited[-1] == "qabench"
    assert f"version = {{{__version__}}}" in bibtex()


def test_a_metric_includes_its_benchmark_and_source() -> None:
    text = bibtex(["fanout_bleurt", "fanoutqa"])
    assert "BLEURT" in text and text.count("FanOutQA}: A Multi-Hop") == 1
