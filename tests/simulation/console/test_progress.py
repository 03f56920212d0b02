"""Progress as it is seen on a terminal and in a log, on a clock of its own."""

import pytest

from simulation.console.progress import Lines, progress_bar


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def lines_of(planned: int, seconds: float, finished: int = 0) -> list[str]:
    """Return what a log holds of a stage whose steps take equally long, of which some were done before."""
    clock, written = Clock(), list[str]()
    lines = Lines(written.append, clock)
    for done in range(finished, planned + 1):
        lines("running", done, planned)
        clock.seconds += seconds
    return written


def test_a_log_has_a_line_per_step_or_per_tenth_whichever_are_fewer() -> None:
    assert lines_of(3, 60) == [
        "running: 1 of 3",
        "running: 2 of 3, about 1 min left",
        "running: 3 of 3",
    ]
    assert len(lines_of(1000, 5)) == 10
    assert len(lines_of(1000, 0.1)) == 10


def test_what_was_finished_before_says_nothing_of_the_time_left() -> None:
    assert lines_of(60, 60, finished=50)[:2] == ["running: 51 of 60", "running: 57 of 60, about 3 min left"]
    assert lines_of(200, 5 * 60)[1] == "running: 21 of 200, about 14 h 55 min left"


def test_the_time_left_rests_on_steps_after_the_first_which_waits_for_workers_to_start() -> None:
    clock, written = Clock(), list[str]()
    lines = Lines(written.append, clock)
    for seconds, done in ((0, 0), (9, 1), (9.1, 2), (12, 5), (15, 8), (18, 11), (21, 14), (29, 22)):
        clock.seconds = seconds
        lines("running", done, 22)
    assert written == [
        "running: 1 of 22",  # not 3 min
        "running: 5 of 22",
        "running: 8 of 22",
        "running: 11 of 22, about 10 s left",
        "running: 14 of 22, about 7 s left",
        "running: 22 of 22",
    ]


def test_without_a_terminal_nothing_precedes_the_refusal_of_a_configuration(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("simulation.console.progress.Lines", lambda write: Lines(write, Clock()))
    with progress_bar(quiet=False) as progress:
        progress("loading the ratings", 0, 0)
    with progress_bar(quiet=True) as progress:
        progress("loading the ratings", 0, 0)
    assert capsys.readouterr().err == ""
