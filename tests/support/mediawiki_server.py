"""A real MediaWiki on loopback with a small wiki, for the integration tests.

Debian's package has the program and PHP the web server; the wiki's database and settings are the
test's. The pages come in as a dump, which is how revisions get dates of the past.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from xml.sax.saxutils import escape, quoteattr

PROGRAM = Path("/usr/share/mediawiki")
PACKAGES = "mediawiki php-cli php-sqlite3 php-mbstring php-xml php-intl"
SECONDS_TO_START = 60
# a title and its revisions as (time, wikitext), the oldest first
Page = tuple[str, list[tuple[str, str]]]
# Background jobs of requests are off, and errors are shown.
SETTINGS = """
$wgShowExceptionDetails = true;
$wgJobRunRate = 0;
$wgMainCacheType = CACHE_NONE;
$wgParserCacheType = CACHE_NONE;
$wgEnableUploads = false;
$wgAllowExternalImages = true;
$wgTmpDirectory = __DIR__;
$wgCacheDirectory = __DIR__;
"""


def why_not() -> str | None:
    """Why the server cannot run on this machine, or None."""
    if not (PROGRAM / "maintenance" / "install.php").is_file() or shutil.which("php") is None:
        return f"needs a real MediaWiki: apt-get install --no-install-recommends {PACKAGES}"
    return None


@dataclass
class MediaWikiServer:
    """Installs a wiki in ``folder``, fills it with ``pages`` and serves its ``api.php`` while the
    context is open.
    """

    folder: Path
    pages: list[Page]
    port: int = field(init=False, default=0)

    @property
    def api(self) -> str:
        return f"http://127.0.0.1:{self.port}/api.php"

    def __enter__(self) -> Self:
        self.port = free_port()
        self._install()
        self._fill()
        log = self.folder / "server.log"
        command = ["php", "-S", f"127.0.0.1:{self.port}", "-t", str(PROGRAM)]
        workers = self._environment() | {"PHP_CLI_SERVER_WORKERS": "4"}
        with log.open("wb") as output:
            self._server = subprocess.Popen(
                command, env=workers, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        wait_for(f"{self.api}?action=query&format=json", self._server, log)
        return self

    def __exit__(self, *_: object) -> None:
        # If only PHP's web server is stopped, its workers continue.
        os.killpg(self._server.pid, signal.SIGTERM)
        self._server.wait(timeout=60)

    def _install(self) -> None:
        (self.folder / "data").mkdir(parents=True)
        settings = ["--dbtype", "sqlite", "--dbname", "wiki", "--dbpath", str(self.folder / "data")]
        place = ["--confpath", str(self.folder), "--server", f"http://127.0.0.1:{self.port}", "--scriptpath", ""]
        self._maintain("install.php", *settings, *place, "--pass", "only-on-loopback-1", "Testwiki", "Admin")
        with (self.folder / "LocalSettings.php").open("a", encoding="utf-8") as file:
            file.write(SETTINGS)

    def _fill(self) -> None:
        dump = self.folder / "dump.xml"
        dump.write_text(_dump(self.pages), encoding="utf-8")
        self._maintain("importDump.php", "--no-updates", str(dump))
        self._maintain("initSiteStats.php", "--update")
        self._maintain("rebuildtextindex.php")

    def _maintain(self, script: str, *arguments: str) -> None:
        command = ["php", str(PROGRAM / "maintenance" / script), *arguments]
        done = subprocess.run(command, env=self._environment(), capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise RuntimeError(f"{script} failed:\n{done.stdout}\n{done.stderr}")

    def _environment(self) -> dict[str, str]:
        # The settings of an existing wiki on the machine are not changed.
        return {**os.environ, "MW_CONFIG_FILE": str(self.folder / "LocalSettings.php")}


def free_port() -> int:
    """A TCP port of the loopback interface that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    """Returns once ``url`` responds; raises with the server's log if it ends or does not respond."""
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=60) as response:
                response.read()
                return
        except urllib.error.HTTPError as error:
            error.close()
            break
        except OSError:
            time.sleep(0.05)
    server.kill()
    raise RuntimeError(f"{url} does not answer:\n{log.read_text(errors='replace')}")


def _dump(pages: list[Page]) -> str:
    """The pages as a MediaWiki export; page ids from 101, revision ids from 1001, in order."""
    lines = ['<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">']
    revision = 1000
    for number, (title, revisions) in enumerate(pages, 101):
        lines.append(f"<page><title>{escape(title)}</title><ns>0</ns><id>{number}</id>")
        for time_, text in revisions:
            revision += 1
            lines.append(
                f"<revision><id>{revision}</id><timestamp>{time_}</timestamp>"
                f"<contributor><username>Writer</username></contributor><model>wikitext</model>"
                f"<format>text/x-wiki</format><text xml:space={quoteattr('preserve')}>{escape(text)}</text></revision>"
            )
        lines.append("</page>")
    return "\n".join([*lines, "</mediawiki>"])
