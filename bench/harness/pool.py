"""The processes that the sessions of a benchmark live in.

Plain Spark and Comet differ in plugins and memory, so one JVM cannot have both. As two processes
they take turns, and the one that waits costs only its memory.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, TimeoutError
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

from harness import worker
from harness.sessions import SessionSpec


class SessionLostError(Exception):
    """The process of a session ended, or took too long."""


class Pool:
    """The sessions of a case, each in a process that starts when it is first needed."""

    def __init__(self, spec: SessionSpec, timeout: float) -> None:
        self._spec = spec
        self._timeout = timeout
        self._processes: dict[str, ProcessPoolExecutor] = {}

    def ask(self, kind: str, command: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function of `worker` in the session of that kind."""
        if kind not in self._processes:
            self._processes[kind] = ProcessPoolExecutor(
                1,
                get_context("spawn"),
                initializer=worker.start,
                initargs=(replace(self._spec, kind=kind),),
            )
        try:
            return self._processes[kind].submit(command, *arguments).result(self._timeout)
        except TimeoutError:
            self.replace(kind)
            raise SessionLostError(f"took longer than {self._timeout:.0f} s") from None
        except BrokenProcessPool:
            self.replace(kind)
            raise SessionLostError("the process of the session ended") from None

    def replace(self, kind: str) -> None:
        """End a session whose heap may be in disorder after an error; the next call starts one."""
        executor = self._processes.pop(kind, None)
        if executor is not None:
            # The JVM ends when its standard input is closed.
            for process in list((getattr(executor, "_processes", None) or {}).values()):
                process.kill()
            executor.shutdown(wait=True)

    def close(self) -> None:
        """End all sessions."""
        for kind in list(self._processes):
            self.replace(kind)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
