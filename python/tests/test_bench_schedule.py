"""Laying out tasks on cores: by hand, and what holds for any tasks."""

from __future__ import annotations

import pytest
from harness.schedule import Driver, Span, Stage, makespan, schedule
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("tasks", "cores", "expected"),
    [
        ([3, 1, 2], 1, 6),
        # 3 beside 1 + 2.
        ([3, 1, 2], 2, 3),
        # The order decides: 1 + 3 beside 2.
        ([1, 2, 3], 2, 4),
        ([5, 1, 1, 1, 1], 2, 5),
        ([5, 1, 1, 1, 1], 5, 5),
        ([2] * 7, 3, 6),
        ([], 3, 0),
    ],
)
def test_one_stage(tasks: list[float], cores: int, expected: float) -> None:
    assert makespan([Stage(tasks)], cores) == expected


def test_a_join_waits_for_all_of_its_inputs() -> None:
    stages = [Stage([2, 2]), Stage([1]), Stage([3], parents=(0, 1))]
    assert schedule(stages, 2) == [Span(0, 2), Span(2, 3), Span(3, 6)]
    assert schedule(stages, 3) == [Span(0, 2), Span(0, 1), Span(2, 5)]


def test_a_stage_that_was_ready_earlier_goes_first() -> None:
    # The join of the first two is ready at 1, the third scan was ready at 0 and is not yet done.
    stages = [Stage([1]), Stage([1]), Stage([4, 4, 4]), Stage([1], (0, 1)), Stage([1], (2, 3))]
    assert schedule(stages, 2)[2:] == [Span(1, 9), Span(5, 6), Span(9, 10)]


def test_the_driver_starts_one_task_after_the_other() -> None:
    assert makespan([Stage([1, 1])], 2, Driver(task=1)) == 3
    # Cores wait for a driver that is slower than the tasks.
    assert makespan([Stage([0.5] * 10)], 100, Driver(task=1)) == 10.5
    assert makespan([Stage([1]), Stage([1], (0,))], 1, Driver(stage=0.5)) == 2.5


def test_a_stage_is_not_done_before_its_input_came() -> None:
    stages = [Stage([1], transfer=5), Stage([1], (0,))]
    assert schedule(stages, 4) == [Span(0, 5), Span(5, 6)]
    assert makespan([Stage([6], transfer=5)], 4) == 6


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one core"):
        makespan([Stage([1])], 0)
    with pytest.raises(ValueError, match="wait for each other"):
        makespan([Stage([1], (1,)), Stage([1], (0,))], 1)


durations = st.lists(st.integers(0, 50), max_size=12)


@st.composite
def plans(draw: st.DrawFn) -> list[Stage]:
    """Stages that read from any of those before them."""
    stages: list[Stage] = []
    for index in range(draw(st.integers(1, 6))):
        parents = draw(st.sets(st.integers(0, index - 1), max_size=3)) if index else set()
        stages.append(Stage(draw(durations), tuple(sorted(parents))))
    return stages


def critical_path(stages: list[Stage]) -> float:
    """The longest chain of stages, each as long as its longest task."""
    ends: list[float] = []
    for stage in stages:
        begin = max((ends[parent] for parent in stage.parents), default=0)
        ends.append(begin + max(stage.tasks, default=0))
    return max(ends)


@given(plans(), st.integers(1, 8))
def test_no_faster_than_its_work_and_no_slower_than_must_be(
    stages: list[Stage], cores: int
) -> None:
    took = makespan(stages, cores)
    work = sum(sum(stage.tasks) for stage in stages)
    assert took >= work / cores
    assert took >= critical_path(stages)
    # Graham's bound: a core idles only while the longest chain makes progress.
    assert took <= work / cores + critical_path(stages) + 1e-9


@given(plans())
def test_with_a_core_for_every_task_only_the_longest_chain_counts(stages: list[Stage]) -> None:
    cores = max(1, sum(len(stage.tasks) for stage in stages))
    assert makespan(stages, cores) == critical_path(stages)
    assert makespan(stages, 1) == sum(sum(stage.tasks) for stage in stages)


@given(st.lists(durations, min_size=1, max_size=3), st.integers(1, 8))
def test_more_cores_are_never_slower_for_scans(scans: list[list[int]], cores: int) -> None:
    stages = [Stage(tasks) for tasks in scans]
    assert makespan(stages, cores + 1) <= makespan(stages, cores)


@given(plans(), st.integers(1, 8), st.integers(0, 3), st.integers(0, 3))
def test_a_driver_only_costs(stages: list[Stage], cores: int, task: int, stage: int) -> None:
    # With a core for every task, so that another order of starting tasks cannot be a better one.
    cores = max(1, sum(len(each.tasks) for each in stages))
    assert makespan(stages, cores, Driver(task, stage)) >= makespan(stages, cores)
