"""Runs code blocks of the documentation: Python blocks in one session, commands in a shell, a
scripted model.
"""

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from openai_server import OpenAIServer

MARK = "\x1e"
NOT_PASSED_ON = ("QABENCH_MIRROR", "QABENCH_SPACY_MODEL")  # readers do not have them
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@contextmanager
def scripted_model() -> Iterator[str]:
    """The URL of an OpenAI-compatible server whose every answer is "1998"."""
    with OpenAIServer() as server:
        server.reply = lambda body: "1998"
        yield server.base_url


def script_of(text: str) -> str:
    """The blocks as one Python program; for shell blocks, only the lines that call qabench (CI does
    the setup). Before each block the program prints ``MARK``.
    """
    parts = ["import subprocess"]
    for language, code in BLOCK.findall(text):
        parts.append(f"print({MARK!r}, end='', flush=True)")
        if language == "python":
            parts.append(code)
        else:
            commands = [line for line in code.splitlines() if line.startswith("qabench ")]
            parts += [f"subprocess.run({command!r}, shell=True, check=True)" for command in commands]
    return "\n".join(parts)


def run_blocks(text: str, folder: Path, **environment: str) -> list[str]:
    """The standard output of each block.

    Args:
        text: a page.
        folder: the working folder.
        **environment: variables in addition to those of this process.
    """
    scripts = sysconfig.get_path("scripts")
    env = {**os.environ, **environment, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    for name in NOT_PASSED_ON:
        env.pop(name, None)
    command = [sys.executable, "-W", "ignore", "-c", script_of(text)]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split(MARK)[1:]
