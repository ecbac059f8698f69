"""The standalone cluster of the benchmarks goes away, whatever happens."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from harness import standalone
from harness.standalone import Standalone
from harness.worker import cpu_seconds


def groups_of(directory: Path) -> list[int]:
    """Process groups of the processes that run in the directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").resolve().is_relative_to(directory):
                found.append(os.getpgid(int(process.name)))
        except (OSError, ValueError):
            continue
    return found


needs_proc = pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="looks at /proc")


@needs_proc
def test_it_is_stopped_after_a_failure(tmp_path: Path) -> None:
    directory = tmp_path.resolve() / "cluster"

    def fail() -> None:
        with Standalone(directory, "512m") as cluster:
            cluster.add_worker()
            cluster.add_worker()
            assert cluster.workers == 2
            groups = groups_of(directory)
            assert len(set(groups)) == 3
            assert os.getpgrp() not in groups
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert groups_of(directory) == []


@needs_proc
def test_a_daemon_that_does_not_listen_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standalone, "STOP_SECONDS", 1.0)
    directory = tmp_path.resolve() / "cluster"
    cluster = Standalone(directory, "512m")
    try:
        (group,) = set(groups_of(directory))
        os.killpg(group, signal.SIGSTOP)
    finally:
        cluster.stop()
    assert groups_of(directory) == []


@needs_proc
def test_a_worker_that_does_not_start_is_an_error(tmp_path: Path) -> None:
    directory = tmp_path.resolve() / "cluster"
    with Standalone(directory, "no memory") as cluster:
        with pytest.raises(RuntimeError, match="worker-0 did not start; its log is"):
            cluster.add_worker()
        assert cluster.workers == 0
    assert groups_of(directory) == []


@needs_proc
def test_cpu_time_is_that_of_a_thread() -> None:
    threads = Path("/proc/self/task")
    own = (str(threading.get_native_id()), Path("/proc/thread-self/comm").read_text().strip())
    before = cpu_seconds(threads)
    end = time.thread_time() + 0.3
    while time.thread_time() < end:
        pass
    spent = {key: seconds - before.get(key, 0.0) for key, seconds in cpu_seconds(threads).items()}
    # In ticks of a hundredth of a second.
    assert 0.27 <= spent[own] <= 0.4
