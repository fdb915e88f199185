"""Opening a database from many threads and processes at once."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from qabench.io import sqlite
from qabench.io.sqlite import open_database

SCHEMA = "PRAGMA journal_mode = WAL; CREATE TABLE IF NOT EXISTS words (word TEXT PRIMARY KEY);"


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
