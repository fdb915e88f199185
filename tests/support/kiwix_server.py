"""A real Kiwix server on loopback with a ZIM file of a few pages of its own, for the integration tests."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from mediawiki_server import free_port, wait_for

PACKAGES = "kiwix-tools"
BOOK = "birds_en_all"
PAGE = "<!DOCTYPE html><html><head><title>{title}</title><meta charset='utf-8'></head><body>{body}</body></html>"


def why_not() -> str | None:
    """Why the server cannot run on this machine, or None."""
    if shutil.which("kiwix-serve") is None:
        return f"needs a real Kiwix: apt-get install --no-install-recommends {PACKAGES}"
    return None


@dataclass
class KiwixServer:
    """Creates a ZIM file in ``folder`` and serves it while the context is open.

    ``pages`` are by title; ``redirects`` from title to title; ``prefix`` is the path below which all is served.
    """

    folder: Path
    pages: dict[str, str]
    redirects: dict[str, str]
    prefix: str = ""
    port: int = field(init=False, default=0)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.prefix}"

    def __enter__(self) -> KiwixServer:
        from zim_files import write_zim

        self.port = free_port()
        pages = {title: PAGE.format(title=title, body=body) for title, body in self.pages.items()}
        zim = write_zim(self.folder / f"{BOOK}.zim", pages, self.redirects, full_text=True)
        where = ["--address", "127.0.0.1", "--port", str(self.port), *(["-r", self.prefix] if self.prefix else [])]
        log = self.folder / "server.log"
        with log.open("wb") as output:
            self._server = subprocess.Popen(["kiwix-serve", *where, str(zim)], stdout=output, stderr=subprocess.STDOUT)
        wait_for(f"{self.base}/catalog/search", self._server, log)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.terminate()
        self._server.wait(timeout=60)
