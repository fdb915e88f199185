"""Writing of files, and opening a database from many threads and processes at once."""

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet
import pytest

from qabench.errors import InputError, QabenchError
from qabench.io import sqlite
from qabench.io.escaping import csv_text
from qabench.io.files import _processes, check_writable, sweep, write_text
from qabench.io.sqlite import open_database
from qabench.retrieval.corpus import read_rows

SCHEMA = "PRAGMA journal_mode = WAL; CREATE TABLE IF NOT EXISTS words (word TEXT PRIMARY KEY);"


@pytest.mark.parametrize("text", ["=1+1", "\uff1d1+1", "\xa0=1+1", "\ufeff \uff0b1+1", "\u3000@a", "\t-1+a", " =1"])
def test_a_cell_is_not_a_formula_and_others_stay(text: str) -> None:
    assert csv_text(text).startswith("'")
    for other in ("-1.5", "-0.2 to 0.1", "a=1", "", "\xa0", "1 - 2"):
        assert csv_text(other) == other


def test_a_damaged_parquet_file_is_one_line(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a"] * 99}), tmp_path / "a.parquet")
    data = (tmp_path / "a.parquet").read_bytes()
    messages = []
    for at in range(4, len(data), 3):
        (tmp_path / "a.parquet").write_bytes(data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :])
        try:
            list(read_rows(tmp_path / "a.parquet"))
        except InputError as error:
            messages.append(str(error))
    assert messages and not [message for message in messages if "\n" in message]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such test of a process")
def test_temporary_files_of_dead_processes_are_deleted_at_once(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    here = _processes()
    dead = tmp_path / f".index.bm25.{ended.pid}-{here}-a_b1"
    kept = [f".index.bm25.{os.getpid()}-{here}-ab", f".index.bm25.{ended.pid}-00000000-ab", ".index.bm25.abc", "other"]
    for name in (dead.name, *kept):
        (tmp_path / name).write_text("x")
    sweep(tmp_path, "index.bm25")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)
    os.utime(tmp_path / kept[1], (0, 0))  # of another machine, but old
    sweep(tmp_path, "index.bm25")
    assert not (tmp_path / kept[1]).exists() and (tmp_path / kept[0]).exists()


def test_a_check_creates_nothing(tmp_path: Path) -> None:
    check_writable(tmp_path / "new" / "folder" / "index.html")
    (tmp_path / "file").write_text("x")
    with pytest.raises(QabenchError, match=r"cannot write .*: Not a directory"):
        check_writable(tmp_path / "file" / "folder" / "index.html")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_dash_is_not_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It left a file of this name, where other tools print to standard output."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="for standard output, name /dev/stdout"):
        check_writable(Path("-"))
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    check_writable(pipe)
    reader.start()
    write_text(pipe, "content")
    reader.join()
    assert read == ["content"] and stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_new_file_is_opened_concurrently(tmp_path: Path) -> None:
    together = threading.Barrier(8)

    def write(path: Path, word: str) -> None:
        together.wait()
        connection = open_database(path, SCHEMA)
        with connection:
            connection.execute("INSERT INTO words VALUES (?)", (word,))
        connection.close()

    with ThreadPoolExecutor(8) as pool:
        for number in range(30):
            path = tmp_path / "new" / f"{number}.sqlite"
            list(pool.map(write, [path] * 8, map(str, range(8))))
            connection = open_database(path, SCHEMA)
            assert connection.execute("SELECT count(*) FROM words").fetchone() == (8,)
            connection.close()


def test_a_locked_file_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "SECONDS_TO_WAIT_FOR_OTHERS", 0.1)
    path = tmp_path / "locked.sqlite"
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            open_database(path, SCHEMA)
    other.close()


def test_an_output_does_not_replace_an_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    answers = tmp_path / "answers.jsonl"
    answers.write_text("x")
    check_writable(answers, [None, "-", "", "a model", tmp_path / "other.jsonl"])
    with pytest.raises(InputError, match=r"would replace \./answers\.jsonl; name another file"):
        check_writable(answers, ["./answers.jsonl"])
