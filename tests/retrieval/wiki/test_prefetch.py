"""Prefetching: no page twice, despite interruptions and full disks."""

import errno
import os
from collections import Counter
from pathlib import Path

import pytest
from scripted_wiki import Fault, ScriptedWiki, wiki_of

from qabench.errors import QabenchError
from qabench.retrieval.wiki.prefetch import prefetch

PAGES = 40


def test_each_page_once(server: ScriptedWiki, tmp_path: Path) -> None:
    rows = [server.row(n) for n in range(1, PAGES + 1)] * 3
    rows += [{"title": "Page 7", "pageid": None, "revid": None}] * 2
    # the first revision named is the page's, as in the official cache
    rows.append(server.row(1) | {"revid": 1002})
    told: list[tuple[int, int]] = []
    done = prefetch(rows, wiki_of(server, tmp_path, in_flight=3), lambda *counts: told.append(counts))
    assert (done.in_all, done.fetched, done.cached, done.not_tried) == (PAGES + 1, PAGES + 1, 0, 0) and done.complete
    assert Counter(server.parsed) == Counter([*range(1001, 1001 + PAGES), 1007])
    assert told[0] == (0, PAGES + 1) and told[-1] == (PAGES + 1, PAGES + 1) and told == sorted(told)
    assert server.busiest <= 3
    asked = len(server.requests)
    again = prefetch(rows, wiki_of(server, tmp_path))
    assert (again.cached, again.fetched, len(server.requests)) == (PAGES + 1, 0, asked)


def test_missing_and_failed_pages_are_listed(server: ScriptedWiki, tmp_path: Path) -> None:
    rows = [server.row(1), {"title": "Nowhere", "pageid": 0}, server.row(2) | {"revid": 5}, server.row(3)]
    server.faults.append(Fault(403))
    done = prefetch(rows, wiki_of(server, tmp_path, in_flight=1))
    assert {page.title for page in done.failed} == {"Nowhere", "Page 2", "Page 1"}
    assert (done.fetched, done.not_tried, done.complete) == (1, 0, False)
    again = prefetch(rows, wiki_of(server, tmp_path))
    assert (again.cached, again.fetched, len(again.failed)) == (1, 1, 2)


def test_gives_up_when_the_server_is_down(server: ScriptedWiki, tmp_path: Path) -> None:
    server.faults.extend([Fault(403)] * PAGES)
    done = prefetch([server.row(n) for n in range(1, PAGES + 1)], wiki_of(server, tmp_path, in_flight=2))
    assert 5 <= len(done.failed) <= 6 and done.not_tried == PAGES - len(done.failed)
    assert prefetch([], wiki_of(server, tmp_path)).complete


def test_a_full_disk_is_resumed(server: ScriptedWiki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [server.row(n) for n in range(1, PAGES + 1)]
    real, calls = os.fsync, iter(range(PAGES))

    def full(file: int) -> None:
        if next(calls) >= 10:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(file)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(QabenchError, match="No space left on device"):
            prefetch(rows, wiki_of(server, tmp_path, in_flight=1))
    done = prefetch(rows, wiki_of(server, tmp_path, in_flight=1))
    assert done.cached >= 5 and done.complete and not list(tmp_path.glob(".*"))
