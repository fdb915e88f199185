"""Work on a cluster gives the results of one process; here with a cluster that only pickles what it
gets.
"""

import json
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from processes import wait_for_end
from typer.testing import CliRunner

from qabench.adapters.columns import score_dataset
from qabench.benchmarks import benchmark
from qabench.benchmarks.fanoutqa.normalizer import Normalizer
from qabench.cli import app
from qabench.cluster import Cluster, jobs
from qabench.errors import InputError, MissingExtra, QabenchError
from qabench.io.workers import Load, cluster, using
from qabench.text.lemmatizers import SimplemmaLemmatizer

TEXTS = ["The 1,234 mice ran.", "Caf\u00e9s &amp; b\u00e4rs!", "", "the 1,234 mice ran."] * 3
TEXTS += ["Houses", "\udc80 broken"]
KILLED = """
import os, signal, time
from qabench.io.workers import iterate_parallel

def work(number):
    os.write(1, f"{os.getpid()}\\n".encode())  # at once, because two workers write
    time.sleep(600 * (number > 1))

for done, _ in enumerate(iterate_parallel(work, range(6), 2)):
    if done == 1:
        os.kill(os.getpid(), signal.SIGKILL)
"""


class Pickling:
    """A cluster in this process."""

    workers, num_gpus = 2, 0.0

    def __init__(self) -> None:
        self.maps = 0

    def map(self, load: Load[Any, Any], inputs: Iterable[Any], gpu: bool) -> Iterator[Any]:
        self.maps += 1
        function = pickle.loads(pickle.dumps(load))()
        for item in inputs:
            yield pickle.loads(pickle.dumps(function(pickle.loads(pickle.dumps(item)))))


def test_normal_forms_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qabench.benchmarks.fanoutqa.normalizer.CHARACTERS_PER_BLOCK_ON_A_CLUSTER", 30)
    expected = Normalizer("simplemma").batch(TEXTS)
    done: list[tuple[int, int]] = []
    with using(machine := Pickling()):
        assert Normalizer("simplemma").batch(TEXTS, lambda *progress: done.append(progress)) == expected
    assert cluster() is None and machine.maps == 1 and len(done) > 1 and done[-1][0] == done[-1][1]


class Other(SimplemmaLemmatizer):
    """A lemmatizer that is different on every machine."""

    def __reduce__(self) -> Any:
        return SimplemmaLemmatizer, ()

    def __init__(self) -> None:
        super().__init__()
        self.key = "here"


def test_another_lemmatizer_on_a_machine_is_an_error() -> None:
    message = "has the lemmatizer object:simplemma-.* instead of object:here"
    with using(Pickling()), pytest.raises(QabenchError, match=message):
        Normalizer(Other()).batch(["a"])


@pytest.fixture
def answers() -> Any:
    """A dataset with answers and references."""
    from datasets import Dataset

    references = [["mice", "cat"], {"a": "houses"}, "bar", True]
    rows = [{"prediction": text, "answer": json.dumps(references[n % 4])} for n, text in enumerate(TEXTS[:-1])]
    return Dataset.from_list([*rows, {"prediction": None, "answer": "1"}])


OPTIONS = {"lemmatizer": "simplemma"}


def test_rows_are_scored_in_parts(answers: Any, tmp_path: Path) -> None:
    import pyarrow.parquet as parquet

    paths = score_dataset(answers, tmp_path / "scores", "fanoutqa", options=OPTIONS, rows_per_part=5)
    assert [path.name for path in paths] == ["part-000000.parquet", "part-000001.parquet", "part-000002.parquet"]
    rows = [row for path in paths for row in parquet.read_table(path).to_pylist()]
    assert len(rows) == len(answers) and rows[0]["acc.loose"] == 0.5 and rows[0]["acc.strict"] == 0
    assert rows[-1]["acc.loose"] == rows[-1]["rouge1.fscore"] == 0
    whole = score_dataset(answers, tmp_path / "whole", "fanoutqa", options=OPTIONS)
    assert rows == parquet.read_table(whole[0]).to_pylist()
    with using(Pickling()):
        many = score_dataset(answers, tmp_path / "many", "fanoutqa", options=OPTIONS, rows_per_part=5)
    assert [path.read_bytes() for path in many] == [path.read_bytes() for path in paths]


def test_all_parts_have_the_same_columns(tmp_path: Path) -> None:
    import pyarrow.parquet as parquet
    from datasets import Dataset

    questions = benchmark("felm").load("sample").rows[:2]
    rows = Dataset.from_list([question.row for question in questions]).add_column("prediction", ["ALL_CORRECT", None])
    paths = score_dataset(rows, tmp_path / "scores", "felm", rows_per_part=1)
    answered, unanswered = (parquet.read_table(path) for path in paths)
    assert answered.schema == unanswered.schema and answered["readable_error_tp"][0].is_valid
    assert not unanswered["readable_error_tp"][0].is_valid and unanswered["error_tp"][0].is_valid


def test_evidence_that_is_one_string_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from datasets import Dataset

    monkeypatch.setattr(jobs, "locate", lambda model: SimpleNamespace(label=model, device="cpu"))
    monkeypatch.setattr(jobs.entailment, "load_entailment", lambda source: None)
    with pytest.raises(InputError, match="evidence of a claim is a string; allowed: a list of strings, or null"):
        jobs.label(Dataset.from_dict({"claim": ["a"], "evidence": ["b"]}), tmp_path)


def test_a_job_continues_with_the_missing_parts(answers: Any, tmp_path: Path) -> None:
    def run(rows: Any = answers, **job_options: Any) -> list[Path]:
        options: Any = {"groups": ["rouge"], "rows_per_part": 5, **job_options}
        return score_dataset(rows, tmp_path / "out", "fanoutqa", **options)

    paths = run()
    first, second = paths[0].stat().st_mtime_ns, paths[1].read_bytes()
    paths[1].unlink()
    done: list[tuple[int, int]] = []
    run(progress=lambda *rows: done.append(rows))
    assert done == [(14, 14)] and paths[1].read_bytes() == second and paths[0].stat().st_mtime_ns == first
    for other in ({"rows_per_part": 6}, {"rows": answers.select(range(9))}, {"groups": ["acc"], "options": OPTIONS}):
        with pytest.raises(InputError, match=r"has the results of another job \(see job.json there\)"):
            run(**other)
    with pytest.raises(InputError, match="has no column 'text'"):
        run(prediction="text")
    with pytest.raises(InputError, match="has no score 'accuracy'"):
        run(groups=["accuracy"])
    (tmp_path / "out" / "job.json").write_text("[1")
    with pytest.raises(InputError, match=r"job.json.*not JSON"):
        run()


def test_without_the_extra_an_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qabench.cluster.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'qabench\[ray\]'"):
        Cluster()
    assert isinstance(CliRunner().invoke(app, ["score", "fanoutqa", "answers.jsonl", "--ray"]).exception, MissingExtra)


def test_an_address_where_nothing_answers() -> None:
    pytest.importorskip("ray", reason="needs the extra ray")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(QabenchError, match=r"the Ray cluster 127\.0\.0\.1:\d+ cannot be reached: .*refused"):
        Cluster(f"127.0.0.1:{port}").__enter__()


def test_workers_end_when_their_parent_is_killed() -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, check=False, timeout=300)
    assert killed.returncode == -signal.SIGKILL and killed.stdout
    for pid in set(map(int, killed.stdout.split())):
        wait_for_end(pid)
