import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

import simulation
from dprec import __version__
from dprec.attacks import ATTACKS
from dprec.binarization import BINARIZATIONS
from dprec.completion import COMPLETIONS, PERTURBATIONS
from dprec.components import Registry, kind_of
from dprec.datasets import DATASETS
from dprec.gradients import GRADIENTS
from dprec.mechanisms import MECHANISMS
from dprec.schedules import SCHEDULES
from dprec.splits import SPLITS
from simulation.configuration.strict_yaml import presets
from simulation.console.command_line import LISTINGS, main
from simulation.console.parameters import integer
from simulation.protocols import PROTOCOLS
from tests.waiting import PATIENCE_SECONDS


class Finished:
    """What a command left behind."""

    def __init__(self, code: object, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def dprec(capsys: pytest.CaptureFixture[str]) -> Any:
    """Return the command line as a function of its arguments."""

    def command(*arguments: object) -> Finished:
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Finished(caught.value.code, captured.out, captured.err)

    return command


@pytest.fixture
def config(tmp_path: Path, tiny: dict[str, Any]) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump(tiny))
    return path


def one_line(finished: Finished, code: int) -> str:
    """Return the only line that a refused command prints."""
    assert (finished.code, finished.out) == (code, "")
    assert finished.err.startswith("dprec: ")
    assert finished.err.endswith("\n")
    assert finished.err.count("\n") == 1
    return finished.err


def test_a_run_ends_with_a_table_and_its_directory(dprec: Any, config: Path, tmp_path: Path) -> None:
    finished = dprec("run", config, "-o", tmp_path / "run")
    assert finished.code == 0
    assert finished.err == ""
    assert "RMSE" in finished.out
    places = [f"page: {tmp_path / 'run' / 'report.html'}", f"run directory: {tmp_path / 'run'}"]
    assert finished.out.splitlines()[-2:] == places
    assert (tmp_path / "run" / "summary.json").exists()


def test_the_population_stays_where_it_was_put_for_runs_with_the_same_ratings(
    dprec: Any, config: Path, tmp_path: Path
) -> None:
    place = tmp_path / "population"
    options = ("--population-dir", place, "--no-page", "--quiet")
    for name, epsilon in (("one", 1.0), ("two", 2.0)):
        finished = dprec(
            "run", config, "-o", tmp_path / name, *options, "--set", f"protocol.privacy.epsilon={epsilon}"
        )
        assert (finished.code, finished.err) == (0, "")
        assert sorted(path.name for path in place.iterdir()) == ["ratings.json", "shard-00000.npy"]
    other = dprec("run", config, "-o", tmp_path / "three", *options, "--set", "dataset.seed=1")
    assert "population: the population of another run" in one_line(other, 2)
    assert "simulation.population_dir: ''" in one_line(dprec("run", config, "--population-dir", ""), 2)
    (place / "shard-00000.npy").write_bytes(b"")
    cut = dprec("run", config, "-o", tmp_path / "four", *options)
    assert "shard-00000.npy: 0 bytes" in one_line(cut, 2)


def test_a_run_that_needs_more_memory_than_there_is_is_refused_before_it_starts(
    dprec: Any, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simulation.engine.ray_cluster.available_memory", lambda: 0.2e9)
    line = one_line(dprec("run", config, "-o", tmp_path / "run"), 2)
    assert "memory: 40 users, 30 items and 400 cells need about 0.3 GB, 0.2 GB are available" in line
    assert not (tmp_path / "run").exists()


def test_an_audit_leaves_nothing_with_the_population(dprec: Any, config: Path, tmp_path: Path) -> None:
    place = tmp_path / "population"
    finished = dprec(
        "audit", config, "-o", tmp_path / "audit", "--trials", 200, "--population-dir", place, "--quiet"
    )
    assert (finished.code, finished.err) == (0, "")
    assert list(place.iterdir()) == []


def test_quiet_is_silent(dprec: Any, config: Path, tmp_path: Path) -> None:
    finished = dprec("run", config, "-o", tmp_path / "run", "--no-page", "--quiet")
    assert (finished.code, finished.out, finished.err) == (0, "", "")


def test_without_a_page_the_directory_is_complete_and_the_page_is_drawn_later(
    dprec: Any, config: Path, tmp_path: Path
) -> None:
    assert dprec("run", config, "-o", tmp_path / "run", "--no-page", "--quiet").code == 0
    assert (tmp_path / "run" / "summary.json").exists()
    assert not (tmp_path / "run" / "report.html").exists()
    assert not (tmp_path / "run" / "figures").exists()
    assert dprec("report", tmp_path / "run").code == 0
    assert (tmp_path / "run" / "report.html").exists()


def test_without_a_directory_a_run_goes_to_runs(
    dprec: Any, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert dprec("run", config, "--no-page", "--quiet").code == 0
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("tiny-")


def test_a_tracker_that_is_not_installed_is_refused_before_anything_is_written(
    dprec: Any, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    line = one_line(dprec("run", config, "-o", tmp_path / "run", "--track", "mlflow"), 2)
    assert "--track: mlflow, but MLflow is not installed" in line
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("override", "where"),
    [
        ("sead=1", "tiny.yaml: sead"),
        ("protocol.privacy.epsilon=50", "protocol.privacy.epsilon"),
        ("protocol.privacy.epsilon=1e-300", "protocol.privacy.epsilon"),
        ("protocol.privacy.per=cell", "protocol.privacy.per"),
        ("protocol.privacy=null", "protocol.privacy"),
        ("protocol.mechanism={kind: none}", "protocol.privacy"),
        ("protocol.completion.rank=1000", "protocol.completion.rank"),
        ("protocol.completion={kind: calibrated, histogram: [1, 0, 1, 1, 1]}", "completion.histogram[1]"),
        ("protocol.completion={kind: calibrated, histogram: [1, 1]}", "completion.histogram"),
        ("protocol.completion={kind: calibrated, histogram: nothing}", "completion.histogram"),
        ("protocol.mechanism={kind: threshold-bit, other_thresholds: 1}", "mechanism.other_thresholds"),
        ("protocol.mechanism={kind: threshold-bit, threshold: 9}", "mechanism.threshold"),
        ("dataset={kind: csv, path: nowhere.csv, items: {path: 1}}", "dataset.items.path"),
        ("dataset={kind: synthetic, users: 1, items: 30, ratings: 20}", "ratings"),
        ("dataset.ratings=1201", "dataset.ratings"),
        ("split={kind: predefined, fold: u1}", "split.fold"),
        ("split={kind: k-fold, folds: 5, fold: 5}", "split.fold"),
        ("split={kind: leave-n-per-user, count: 99}", "split"),
        ("dataset={kind: movielens-100k, path: /nowhere}", "/nowhere"),
        ("dataset={kind: movielens-100k, path: ''}", "dataset.path"),
        ("evaluation.relevant_from=6", "evaluation.relevant_from"),
        ("seed", "--set"),
        ("seed=[", "--set seed, line 1"),
        ("dataset={kind:csv, path: x.csv}", "--set dataset"),
    ],
)
def test_a_bad_configuration_is_one_line(
    dprec: Any, config: Path, tmp_path: Path, override: str, where: str
) -> None:
    line = one_line(dprec("run", config, "-o", tmp_path / "run", "--set", override), 2)
    assert f"{where}: " in line.partition("; accepted: ")[0]
    assert not (tmp_path / "run").exists()


TRAIN = ["1\t1\t3\t0", "1\t2\t4\t0", "2\t1\t5\t0", "2\t3\t1\t0", "3\t2\t2\t0"]
TEST = ["1\t3\t3\t0", "2\t2\t4\t0"]


def movielens(folder: Path, train: list[str], test: list[str]) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "u1.base").write_text("\n".join(train) + "\n")
    (folder / "u1.test").write_text("\n".join(test) + "\n")
    (folder / "u.data").write_text("\n".join([*train, *test]) + "\n")
    return f"dataset={{kind: movielens-100k, path: {folder}}}"


def run_movielens(dprec: Any, config: Path, tmp_path: Path, train: list[str], test: list[str]) -> Finished:
    dataset = movielens(tmp_path / "data", train, test)
    overrides = ["--set", dataset, "--set", "split={kind: predefined, fold: u1}"]
    overrides += ["--set", "protocol.completion.rank=1"]
    finished: Finished = dprec("run", config, "-o", tmp_path / "run", "--quiet", "--no-page", *overrides)
    return finished


def test_users_and_items_that_occur_in_the_test_ratings_only_are_counted(
    dprec: Any, config: Path, tmp_path: Path
) -> None:
    finished = run_movielens(dprec, config, tmp_path, TRAIN, [*TEST, "9\t1\t5\t0", "1\t44\t2\t0"])
    assert finished.code == 0, finished.err
    dataset = json.loads((tmp_path / "run" / "summary.json").read_text())["dataset"]
    assert (dataset["users"], dataset["items"]) == (4, 4)
    assert (dataset["users_only_in_test"], dataset["items_only_in_test"]) == (1, 1)
    rows = (tmp_path / "run" / "traffic.csv").read_text().splitlines()
    assert rows[-1].startswith("9,0,0,")


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["run", "/nowhere.yaml"],
        ["run", "/"],
        ["runs"],
        ["run", "CONFIG", "--sett", "a=1"],
        ["run", "CONFIG", "--set"],
        ["run", "CONFIG", "-o", "/dev/null/run"],
        ["run", "CONFIG", "--resume"],
        ["run", "CONFIG", "-o", ""],
        ["compare", "CONFIG", "-o", ""],
        ["compare", "CONFIG", "-o", "/nowhere"],
        ["list"],
        ["list", "nonsense"],
        ["schema", "nonsense"],
        ["fetch", "nonsense"],
    ],
)
def test_a_bad_command_line_is_one_line(dprec: Any, config: Path, arguments: list[str]) -> None:
    one_line(dprec(*(str(config) if word == "CONFIG" else word for word in arguments)), 2)


def test_no_arguments_show_the_help(dprec: Any) -> None:
    finished = dprec()
    assert finished.code == 2
    assert "Usage:" in finished.err + finished.out
    assert "Commands:" in finished.err + finished.out
    assert dprec("--help").code == 0


def test_a_resumed_run_that_has_not_begun_says_so(
    dprec: Any, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["run", config, "-o", tmp_path / "run", "--no-page", "--resume"]
    notice = f"dprec: {tmp_path / 'run'}: nothing to resume, starting a new one\n"

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(sys.modules["simulation.execution"], "run_in", interrupted)
        finished = dprec(*command)
    again = f"dprec: nothing is finished; --resume -o {tmp_path / 'run'} begins again\n"
    assert (finished.code, finished.err) == (130, notice + again + "dprec: interrupted\n")
    finished = dprec(*command)
    assert (finished.code, finished.err) == (0, "")
    finished = dprec(*command[:3], tmp_path / "other", *command[4:])
    assert (finished.code, finished.err) == (0, notice.replace("run:", "other:"))
    assert dprec(*command[:3], tmp_path / "third", *command[4:], "--quiet").err == ""


def test_a_run_that_fails_is_one_line(dprec: Any, config: Path, tmp_path: Path) -> None:
    finished = dprec("run", config, "-o", tmp_path / "run", "--set", "simulation.faults.dropout=1.0")
    assert "none of the 40 users" in one_line(finished, 1)
    assert not (tmp_path / "run" / "summary.json").exists()


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError("Unable to allocate 89 GiB"), 1, "89 GiB"),
        (OSError(28, "No space left on device"), 1, "No space left on device"),
        (OSError(36, "File name too long", "a" * 5000), 2, f"{'a' * 80}...: a name that is too long"),
        (
            PermissionError(13, "Permission denied", "/sealed/x"),
            2,
            "/sealed/x: Permission denied; accepted: a ",
        ),
    ],
)
def test_what_stops_a_run_from_outside_is_one_line(
    dprec: Any,
    config: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    words: str,
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(simulation, "run", stopped)
    assert words in one_line(dprec("run", config, "-o", tmp_path / "run"), code)


def test_a_defect_is_not_hidden(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def defective(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(simulation, "run", defective)
    with pytest.raises(ZeroDivisionError):
        main(["run", str(config), "-o", "/nowhere"])


REGISTRIES: dict[str, Registry[Any]] = {
    "datasets": DATASETS,
    "schedules": SCHEDULES,
    "attacks": ATTACKS,
    "splits": SPLITS,
    "mechanisms": MECHANISMS,
    "completions": COMPLETIONS,
    "gradients": GRADIENTS,
    "perturbations": PERTURBATIONS,
    "binarizations": BINARIZATIONS,
    "protocols": PROTOCOLS,
}


def test_everything_that_is_listed_is_tested() -> None:
    assert set(LISTINGS) == {"presets", *REGISTRIES}


@pytest.mark.parametrize("what", sorted(REGISTRIES))
def test_listings_name_every_component(dprec: Any, what: str) -> None:
    finished = dprec("list", what)
    assert finished.code == 0
    for component in REGISTRIES[what]:
        assert kind_of(component) in finished.out


@pytest.mark.parametrize(("options", "title"), [((), "RunConfig"), (("--comparison",), "ComparisonConfig")])
def test_the_schema_is_printed(dprec: Any, options: tuple[str, ...], title: str) -> None:
    assert json.loads(dprec("schema", *options).out)["title"] == title


@pytest.mark.thorough
def test_a_terminal_without_epsilon_gets_the_table_all_the_same(config: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dprec", "run", str(config)]
    finished = subprocess.run(
        [*command, "-o", str(tmp_path / "run"), "--no-page"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert finished.returncode == 0
    assert "RMSE" in finished.stdout


def test_the_installed_command(config: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dprec", "run", str(config)]
    bad = subprocess.run(
        [*command, "--set", "seed=x"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
        cwd=tmp_path,
    )
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == f"dprec: {config}: seed: 'x'; accepted: an integer\n"


def test_the_version_is_printed(dprec: Any) -> None:
    finished = dprec("--version")
    assert (finished.code, finished.out) == (0, f"dprec {__version__}\n")


@pytest.mark.parametrize(
    ("typed", "nearest"), [(["rnu"], "run"), (["run", "--quite"], "--quiet"), (["run", "blpmf"], "blp-mf")]
)
def test_a_typing_error_is_answered_with_what_is_nearest(dprec: Any, typed: list[str], nearest: str) -> None:
    line = one_line(dprec(*typed), 2)
    assert f"Did you mean '{nearest}'?" in line or f"a preset: {nearest}" in line
    assert line.count(nearest) == 1


def test_the_presets_are_listed(dprec: Any) -> None:
    finished = dprec("list", "presets")
    assert finished.code == 0
    for name in presets():
        assert name in finished.out


def test_a_description_fits_a_narrow_terminal_and_names_what_is_beyond_the_paper(dprec: Any) -> None:
    finished = dprec("describe", "x-map-shrunk")
    assert (finished.code, finished.err) == (0, "")
    assert finished.out.startswith("x-map-shrunk: X-Map (Guerraoui et al.) that transfers deviations")
    lines = finished.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in finished.out
    assert any(line.startswith("guarantee") and "claimed" in line for line in lines)
    assert "  - replacement.transfer is deviation; published: rating (guerraoui2017, section" in finished.out
    assert "beyond the paper: nothing" in dprec("describe", "x-map").out


def test_a_description_as_json_holds_overrides(dprec: Any) -> None:
    finished = dprec("describe", "blp-mf", "--set", "protocol.privacy.epsilon=3", "--json")
    values = json.loads(finished.out)
    assert values["sent"]["epsilon"] == pytest.approx(3, abs=1e-9)


def test_without_a_name_the_presets_are_described_in_a_line_each(dprec: Any) -> None:
    assert dprec("describe").out == dprec("list", "presets").out != ""


def test_a_component_is_described(dprec: Any) -> None:
    finished = dprec("describe", "bounded-laplace")
    assert finished.code == 0
    assert finished.out.startswith("bounded-laplace: a mechanism [neera2023]")
    for words in ("symbols", "256", "an integer", "Points of the grid"):
        assert words in finished.out
    (component,) = json.loads(dprec("describe", "dprec.mechanisms:Laplace", "--json").out)
    assert (component["kind"], component["settings"][0]["default"]) == ("laplace", 256)
    # A name that is a preset's too is the preset; the kind is asked for with its registry.
    assert dprec("describe", "x-map").out.startswith("x-map: ")
    assert "a protocol" in dprec("describe", "protocols/x-map").out
    refused = dprec("describe", "laplace", "--set", "symbols=3")
    assert (refused.code, refused.err.startswith("dprec: --set: beside the component laplace")) == (2, True)
    assert dprec("describe", "no-such-name").code == 2
    assert "no module 'nowhere'" in dprec("describe", "nowhere:Nothing").err


@pytest.mark.parametrize(
    "command", ["", "run", "compare", "list", "describe", "advise", "audit", "attack", "fetch"]
)
def test_help_says_what_arguments_mean(dprec: Any, command: str) -> None:
    shown = dprec(*command.split(), "--help").out
    assert "\\" not in shown
    assert shown.count("rguments:") == bool(command)
    meaning = shown.partition("Arguments:\n")[2].partition("\n\n")[0].replace("[required]", "")
    assert len(meaning.split()) > 2 or not command


def test_a_shell_is_offered_what_can_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from simulation.console.parameters import configurations, presets_and_kinds

    (tmp_path / "mine.yaml").write_text("")
    (tmp_path / "other.txt").write_text("")
    monkeypatch.chdir(tmp_path)
    assert configurations("mi") == ["mine.yaml"]
    assert set(configurations("blp-m")) == {"blp-mf", "blp-mog-mf"}
    assert configurations("oth") == []
    assert configurations("nowhere/x") == []
    assert "bounded-laplace" in presets_and_kinds("bounded")


@pytest.mark.parametrize("text", ["100000", "100_000", "1e5", "1E5", "100000.0"])
def test_every_usual_form_is_read(text: str) -> None:
    assert integer(text) == 100_000


def test_a_large_number_keeps_every_digit() -> None:
    assert integer("9007199254740993") == 9007199254740993


@pytest.mark.parametrize("text", ["1.5", "1e-1", "many", "", "inf", "nan", "1e999"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not an integer"):
        integer(text)
