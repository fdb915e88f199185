"""``qabench cite``: BibTeX of benchmarks, metrics, models and qabench."""

import pytest
from typer.testing import CliRunner

from qabench.cli import app
from qabench.errors import InputError
from qabench.evaluation.signature import version
from qabench.hub.citations import bibtex
from qabench.loading_scripts import benchmark_names, dataset_table

pytestmark = pytest.mark.quick


def test_everything_is_cited_once() -> None:
    text = bibtex(["fanout_bleurt", "qabench/fanoutqa", "fanout_rouge"])
    assert text.count("zhu-etal-2024-fanoutqa") == 1 and "sellam-etal-2020-bleurt" in text
    assert text.endswith(f"  version = {{{version()}}},\n  url = {{https://github.com/qabench/qabench}},\n}}\n")
    assert CliRunner().invoke(app, ["cite"]).stdout == bibtex()
    for name in benchmark_names():
        assert dataset_table(name).citation.strip() in bibtex()


def test_a_model_is_cited_by_its_name_and_revision() -> None:
    text = bibtex(["org_a/Model_1.5@abc123"])
    assert text.startswith("@misc{org-a-model-1-5,\n  title = {{Model\\_1.5}},\n  author = {{org\\_a}},\n")
    assert "note = {Revision abc123}" in text and "url = {https://huggingface.co/org_a/Model_1.5}" in text
    assert "Revision" not in bibtex(["org/model"])
    with pytest.raises(InputError, match=r"model ORG/NAME 'felmm' \(did you mean 'felm'\?\)"):
        bibtex(["felmm"])
