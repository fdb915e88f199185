"""SQLite files that several processes open at the same moment."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

PAUSE = 0.02  # seconds between two tries


def open_database(path: Path | None, schema: str, timeout: float, **options: Any) -> sqlite3.Connection:
    """A connection to a file that has the schema.

    Args:
        path: the file, made with its folder where it is not there; None for a database in memory.
        schema: statements that change nothing where they were run before.
        timeout: seconds to wait for other processes. options: of ``sqlite3.connect``.

    Raises:
        sqlite3.Error, OSError: the file cannot be used, or is still locked after ``timeout``.
    """
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
    connection: sqlite3.Connection = sqlite3.connect(path or ":memory:", timeout=timeout, **options)
    give_up = time.monotonic() + timeout
    while True:
        try:
            connection.executescript(schema)
            return connection
        except sqlite3.OperationalError as error:
            # SQLite's own timeout does not hold for the change to a write-ahead log: that one fails at once.
            if "locked" not in str(error) or time.monotonic() > give_up:
                connection.close()
                raise
            time.sleep(PAUSE)
        except sqlite3.Error:
            connection.close()
            raise
