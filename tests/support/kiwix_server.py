"""A real Kiwix server on loopback with a ZIM file of a few pages of its own, for the integration tests."""

from __future__ import annotations

import shutil
import struct
import subprocess
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from mediawiki_server import free_port, wait_for

PACKAGES = "kiwix-tools zim-tools"
BOOK = "birds_en_all"


def why_not() -> str | None:
    """Why the server cannot run on this machine, or None."""
    if shutil.which("kiwix-serve") is None or shutil.which("zimwriterfs") is None:
        return f"needs a real Kiwix: apt-get install --no-install-recommends {PACKAGES}"
    return None


@dataclass
class KiwixServer:
    """Creates a ZIM file in ``folder`` and serves it while the context is open.

    ``pages`` are by title, as the inside of a body; ``redirects`` from title to title; ``below`` is the folder of the
    pages in the ZIM file ("A/" in those that Kiwix made until 2024); ``prefix`` the path below which all is served.
    """

    folder: Path
    pages: dict[str, str]
    redirects: dict[str, str]
    below: str = "A/"
    prefix: str = ""
    port: int = field(init=False, default=0)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.prefix}"

    def __enter__(self) -> KiwixServer:
        self.port = free_port()
        zim = self._made_zim()
        where = ["--address", "127.0.0.1", "--port", str(self.port), *(["-r", self.prefix] if self.prefix else [])]
        log = self.folder / "server.log"
        with log.open("wb") as output:
            self._server = subprocess.Popen(["kiwix-serve", *where, str(zim)], stdout=output, stderr=subprocess.STDOUT)
        wait_for(f"{self.base}/catalog/search", self._server, log)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.terminate()
        self._server.wait(timeout=60)

    def _made_zim(self) -> Path:
        html = self.folder / "html"
        (html / self.below).mkdir(parents=True)
        (html / "icon.png").write_bytes(_square(48))
        for title, body in self.pages.items():
            self._write(title, "", body)
        for title, target in self.redirects.items():
            self._write(title, f'<meta http-equiv="refresh" content="0;url={target.replace(" ", "_")}">', "")
        main = f"{self.below}{next(iter(self.pages)).replace(' ', '_')}"
        zim = self.folder / f"{BOOK}.zim"
        about = ["--language", "eng", "--title", "Birds", "--description", "A few birds", "--creator", "tests"]
        command = ["zimwriterfs", "--welcome", main, "--illustration", "icon.png", *about, "--publisher", "tests"]
        done = subprocess.run([*command, str(html), str(zim)], capture_output=True, text=True, timeout=120)
        if done.returncode or not zim.is_file():
            raise RuntimeError(f"zimwriterfs failed:\n{done.stdout}\n{done.stderr}")
        return zim

    def _write(self, title: str, head: str, body: str) -> None:
        path = self.folder / "html" / self.below / title.replace(" ", "_")
        path.write_text(
            f"<!DOCTYPE html><html><head><title>{title}</title><meta charset='utf-8'>{head}</head>"
            f"<body>{body}</body></html>",
            encoding="utf-8",
        )


def _square(size: int) -> bytes:
    """A PNG of one color: a ZIM file needs a picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\x40\x80\xc0" * size) * size)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
