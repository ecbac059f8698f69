"""Spark's standalone cluster on this machine, from the jars of PySpark: a master and workers.

Every daemon leads a process group, so that its executors end with it.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pyspark

HOST = "127.0.0.1"
# Generous, for busy machines.
START_SECONDS = 240.0
STOP_SECONDS = 10.0
_EXECUTOR = b"CoarseGrainedExecutorBackend"


class Standalone:
    """A master, to which workers with a core each are added."""

    def __init__(self, directory: Path, worker_memory: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._memory = worker_memory
        self._processes: list[subprocess.Popen[bytes]] = []
        self._daemons: dict[int, subprocess.Popen[bytes]] = {}
        port = _free_port()
        self.url = f"spark://{HOST}:{port}"
        self.workers = 0
        try:
            self._start("master", "Master", "--port", str(port), done="New state: ALIVE")
        except BaseException:
            self.stop()
            raise

    def add_worker(self, host: str = HOST) -> None:
        """Start a worker with one core; `host` is a name of this machine."""
        name = f"worker-{self.workers}"
        arguments = ["--cores", "1", "--memory", self._memory]
        arguments += ["--work-dir", str(self._directory / name), self.url]
        done = "Successfully registered with master"
        self._start(name, "Worker", *arguments, done=done, host=host)
        self._daemons[self.workers] = self._processes[-1]
        self.workers += 1

    def stop_worker(self, number: int) -> None:
        """End a worker and its executors at once, as when its machine is switched off."""
        process = self._daemons.pop(number)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._processes.remove(process)
        shutil.rmtree(self._directory / f"worker-{number}", ignore_errors=True)

    @property
    def running(self) -> list[int]:
        """Numbers of the workers that were not stopped."""
        return sorted(self._daemons)

    def executors(self, number: int) -> list[int]:
        """Processes of a worker's executors."""
        group = self._daemons[number].pid
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                pid = int(process.name)
                if os.getpgid(pid) == group and _EXECUTOR in (process / "cmdline").read_bytes():
                    found.append(pid)
        return found

    @property
    def local_directory(self) -> Path:
        """Where executors keep their shuffle files."""
        return self._directory / "shuffle"

    def stop(self) -> None:
        """End all of it: workers end their executors, and whatever does not end is killed."""
        for process in reversed(self._processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        for process in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, deadline - time.monotonic()))
            # Also where the daemon itself is gone: an executor may have outlived it.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._processes.clear()
        self._daemons.clear()

    def __enter__(self) -> Standalone:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self, name: str, daemon: str, *arguments: str, done: str, host: str = HOST) -> None:
        home = Path(pyspark.__file__).parent
        log_path = self._directory / f"{name}.log"
        environment = {
            **os.environ,
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_LOCAL_DIRS": str(self.local_directory),
            # No settings but ours, and not those of whoever runs this.
            "SPARK_CONF_DIR": str(self._directory),
            "SPARK_DAEMON_MEMORY": "256m",
            # What they do is little, and done once.
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            # An application whose executors are killed again and again goes on.
            "SPARK_MASTER_OPTS": "-Dspark.deploy.maxExecutorRetries=-1",
        }
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{daemon.lower()}"]
        command[-1] += f".{daemon}"
        command += ["--host", host, "--webui-port", "0", *arguments]

        with log_path.open("wb") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._directory,
                env=environment,
                start_new_session=True,
            )
        self._processes.append(process)
        deadline = time.monotonic() + START_SECONDS
        while done not in log_path.read_text(encoding="utf-8", errors="replace"):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Spark's {name} did not start; its log is {log_path}")
            time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind((HOST, 0))
        port: int = found.getsockname()[1]
        return port
