"""The results of all four benchmarks on the real data are as recorded in golden.json; see
golden.py.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_golden_results_are_as_recorded(mirror: Path, spacy_model: str) -> None:
    for package in ("torch", "transformers", "sentencepiece", "libzim", "inspect_ai"):
        pytest.importorskip(package, reason=f"golden results need {package}")
    environment = os.environ | {"QABENCH_MIRROR": str(mirror), "QABENCH_SPACY_MODEL": spacy_model}
    command = [sys.executable, str(Path(__file__).with_name("golden.py")), "compare"]
    compared = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=False)
    assert compared.returncode == 0, (compared.stdout[-8000:], compared.stderr[-2000:])
