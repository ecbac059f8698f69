"""The other end of the workers' pipes: starting them, telling them what to do, ending them."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from harness.sessions import SessionSpec

BENCH = Path(__file__).resolve().parents[1]
START_SECONDS = 180.0


class WorkerError(Exception):
    """The worker could not do it, and says why; it can be told to do other things."""


class WorkerRefusedError(WorkerError):
    """What was asked for is refused, before anything ran or before it could do harm."""


class WorkerDiedError(WorkerError):
    """The process is gone, or had to be ended because it took too long."""


def python_of(line: str) -> str:
    """The Python of the environment that the Makefile makes for a line of Spark; "": this one."""
    return str(BENCH.parent / f".venv-{line}" / "bin" / "python") if line else sys.executable


class WorkerProcess:
    """One process, and the pipe to it."""

    def __init__(self, spec: SessionSpec, timeout: float, line: str = "") -> None:
        cache = Path(spec.cache)
        for directory in ("logs", "shuffle", "work"):
            (cache / directory).mkdir(parents=True, exist_ok=True)
        name = "-".join(filter(None, [spec.kind, spec.heap, line]))
        self._log_path = cache / "logs" / f"{name}.log"
        self._timeout = timeout
        paths = [str(BENCH), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        if line:
            environment["SKEWEXT_JAR"] = spec.jars[line]
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [python_of(line), "-m", "harness.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=cache / "work",
                env=environment,
                # A group of its own: the JVM must go when the process has to.
                start_new_session=True,
            )
        self._send(asdict(spec))
        self._receive(START_SECONDS)

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Have a command done, and wait for it."""
        self._send({"command": command, **arguments})
        answer = self._receive(self._timeout)
        if "refused" in answer:
            raise WorkerRefusedError(answer["refused"])
        if "error" in answer:
            raise WorkerError(answer["error"])
        result: dict[str, Any] = answer["ok"]
        return result

    def stop(self) -> None:
        """End the process: nicely, or by force after a while."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
            self._process.wait(30)
        except (OSError, subprocess.TimeoutExpired):
            self.kill()

    def kill(self) -> None:
        """End the process and its JVM at once."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write((json.dumps(message) + "\n").encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._died("ended") from None

    def _receive(self, timeout: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        # An answer is one line and the worker writes nothing unasked: no bytes stay in a buffer.
        ready, _, _ = select.select([self._process.stdout], [], [], timeout)
        if not ready:
            raise self._died(f"took longer than {timeout:.0f} s")
        line = self._process.stdout.readline()
        if not line:
            raise self._died("ended")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _died(self, how: str) -> WorkerDiedError:
        self.kill()
        text = self._log_path.read_text(encoding="utf-8", errors="replace")
        memory = " (out of memory)" if "OutOfMemoryError" in text[-20_000:] else ""
        return WorkerDiedError(f"the session {how}{memory}")


class Pool:
    """The workers of a case; each starts when it is first needed."""

    def __init__(self, base: SessionSpec, comet_heap: str, timeout: float) -> None:
        self._base = base
        self._comet_heap = comet_heap
        self._timeout = timeout
        self._workers: dict[tuple[str, str | None, str], WorkerProcess] = {}

    def ask(
        self, kind: str, heap: str | None, command: str, /, line: str = "", **arguments: Any
    ) -> dict[str, Any]:
        """Have a command done by the worker of that kind, on that line of Spark; "": on ours."""
        key = (kind, heap, line)
        if key not in self._workers:
            usual = self._comet_heap if kind == "comet" else self._base.heap
            spec = replace(self._base, kind=kind, heap=heap or usual)
            self._workers[key] = WorkerProcess(spec, self._timeout, line)
        try:
            return self._workers[key].ask(command, **arguments)
        except WorkerDiedError:
            del self._workers[key]
            raise

    def replace(self, kind: str, heap: str | None, line: str = "") -> None:
        """Give up a worker whose heap an error may have left in disorder."""
        worker = self._workers.pop((kind, heap, line), None)
        if worker is not None:
            worker.stop()

    def close(self) -> None:
        """End all of them."""
        for worker in self._workers.values():
            worker.stop()
        self._workers.clear()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            # Interrupted: not after the query that is running.
            for worker in self._workers.values():
                worker.kill()
        self.close()
