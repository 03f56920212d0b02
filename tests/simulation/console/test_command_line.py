"""The command line: what it prints, and that whatever it refuses is one line."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

import simulation
from dprec import __version__
from dprec.components import kind_of
from dprec.errors import LESS_MEMORY, RunError
from dprec.mechanisms import MECHANISMS
from dprec.protocols.registry import PROTOCOLS
from simulation.configuration.strict_yaml import presets
from simulation.console.command_line import app
from simulation.console.names import LISTINGS
from simulation.console.parameters import configurations, integer, presets_and_kinds
from simulation.console.terminal import exit_code
from tests.simulation.conftest import Finished
from tests.waiting import PATIENCE_SECONDS


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
    assert (finished.code, finished.err) == (0, "")
    assert "RMSE" in finished.out
    places = [f"page: {tmp_path / 'run' / 'report.html'}", f"run directory: {tmp_path / 'run'}"]
    assert finished.out.splitlines()[-2:] == places
    assert (tmp_path / "run" / "summary.json").exists()


def test_a_run_says_how_its_split_is_read_again(dprec: Any, config: Path, tmp_path: Path) -> None:
    kept = tmp_path / "a split"
    finished = dprec("run", config, "-o", tmp_path / "run", "--no-page", "--save-split", kept)
    said, _, argument = finished.out.splitlines()[-1].partition(": --set ")
    assert said.startswith(f"split: {kept}")
    again = dprec("run", config, "-o", tmp_path / "again", "--no-page", "--set", *shlex.split(argument))
    assert (finished.code, again.code) == (0, 0)
    one, other = (json.loads((tmp_path / name / "summary.json").read_text()) for name in ("run", "again"))
    assert one["accuracy"] == other["accuracy"]


def test_the_population_stays_where_it_was_put_for_runs_with_the_same_ratings(
    dprec: Any, config: Path, tmp_path: Path
) -> None:
    place = tmp_path / "population"

    def run(name: str, override: str) -> Finished:
        options = "--devices-dir", place, "--no-page", "--quiet", "--set", override
        finished: Finished = dprec("run", config, "-o", tmp_path / name, *options)
        return finished

    for epsilon in (1.0, 2.0):
        assert run(f"at-{epsilon}", f"protocol.privacy.epsilon={epsilon}").code == 0
        assert sorted(path.name for path in place.iterdir()) == ["ratings.json", "shard-00000.npy"]
    assert "population: the devices of another run" in one_line(run("other", "dataset.seed=1"), 2)
    (place / "shard-00000.npy").write_bytes(b"")
    assert "shard-00000.npy: 0 bytes" in one_line(run("cut", "protocol.privacy.epsilon=3"), 2)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("run", 2, "CONFIG"),
        ("run /nowhere.yaml", 2, "/nowhere.yaml"),
        ("run blpmf", 2, "a preset: blp-mf"),
        ("rnu", 2, "Did you mean 'run'?"),
        ("run CONFIG --quite", 2, "Did you mean '--quiet'?"),
        ("run CONFIG --set", 2, "--set"),
        ("run CONFIG -o /dev/null/run", 2, "/dev/null"),
        ("run CONFIG --resume", 2, "--resume"),
        ("run CONFIG --devices-dir=", 2, "simulation.devices_dir: ''"),
        ("run .", 2, ".: a folder of neither a run nor a comparison; accepted: one of dprec ls ."),
        ("run nofile.yaml", 2, "accepted: a file or directory of a run (as in cells/), or a preset: "),
        ("compare nofile.csv", 2, "accepted: a file of a comparison or of ratings, or a preset: "),
        ("attack nofile.yaml", 2, "accepted: a file or directory of a run or of a comparison, or a preset: "),
        ("compare CONFIG", 2, "the configuration of a run"),
        ("compare compare-quick --set seeds=[1,1]", 2, "dprec: --set seeds: 1 twice"),
        ("compare compare-quick --set epsilons=[0]", 2, "dprec: --set epsilons[0]: 0; "),
        ("compare compare-quick --only bl-mf", 2, "dprec: --only: no protocol 'bl-mf'; "),
        ("run CONFIG --population 1e6", 2, "--population: an old name; accepted: --users-a-day"),
        ("run CONFIG --population-dir=x", 2, "--population-dir: an old name; accepted: --devices-dir"),
        (
            "run CONFIG --set simulation.population_dir=x",
            2,
            "population_dir: an old name; accepted: devices_dir",
        ),
        ("run CONFIG --users-a-day 0", 2, "--users-a-day: 0.0; accepted: a number of users"),
        ("list nonsense", 2, "nonsense"),
        ("list blp-mf", 2, "list: 'blp-mf', a preset; accepted: dprec describe blp-mf"),
        ("list laplace", 2, "list: 'laplace', a component; accepted: dprec describe laplace"),
        ("list .", 2, "list: '.', a folder; accepted: dprec ls ."),
        ("ls blp-mf", 2, "blp-mf: a preset; accepted: a folder of results, or dprec describe blp-mf"),
        ("ls nowhere", 2, "nowhere: no such directory"),
        ("describe .", 2, ".: a folder of neither a run nor a comparison; accepted: one of dprec ls ."),
        ("describe", 2, "describe: no NAME; accepted: a configuration or a component: dprec list"),
        ("describe no-such-name", 2, "no-such-name"),
        ("describe nowhere:Nothing", 2, "no module 'nowhere'"),
        ("describe laplace --set symbols=3", 2, "--set: beside the component laplace"),
        ("run CONFIG --set sead=1", 2, "dprec: --set sead: an unknown key"),
        ("run CONFIG --set seed", 2, "--set: "),
        ("run CONFIG --set seed=[", 2, "--set seed, line 1: "),
        ("run CONFIG --set dataset.positive=>=\xa05", 2, """: --set 'dataset.positive=">= 5"'"""),
        ("run CONFIG --save-split OUT --set split={kind:\xa0cold-users}", 2, "--save-split: cold users"),
        ("compare CONFIG --save-split OUT", 2, "'--save-split'"),
        ("run CONFIG --set protocol.mechnism.kind=none", 2, "--set protocol.mechnism: "),
        ("run CONFIG --set protocol.privacy.epsilon=1e-300", 2, "protocol.privacy.epsilon: "),
        ("run CONFIG --set protocol.privacy.per=cell", 2, "protocol.privacy.per: "),
        ("run CONFIG --set protocol.mechanism={kind:\xa0none}", 2, "protocol.privacy: "),
        ("run CONFIG --set protocol.completion.rank=1000", 2, "protocol.completion.rank: "),
        ("run CONFIG --set dataset.ratings=1201", 2, "dataset.ratings: "),
        ("run CONFIG --set split={kind:\xa0leave-one-out,by:\xa0random,count:\xa099}", 2, "split: "),
        ("run CONFIG --set dataset={kind:\xa0movielens-100k,path:\xa0/nowhere}", 2, "/nowhere: "),
        ("run CONFIG --set evaluation.relevant_from=6", 2, "evaluation.relevant_from: "),
        ("run CONFIG --set evaluation.lists=0", 2, "evaluation.lists: 0; accepted: at least 1"),
        ("export /nowhere --format csv", 2, "/nowhere: no such directory"),
        (
            "export . --format excel",
            2,
            "dprec: --format: 'excel'; accepted: trec, csv, parquet, latex, bibtex",
        ),
        ("export .", 2, "--format"),
        ("run CONFIG --set simulation.faults.dropout=1.0", 1, "none of the 40 users"),
    ],
)
def test_what_is_refused_is_one_line(
    dprec: Any,
    config: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: str,
    code: int,
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    typed = [word.replace("\xa0", " ").replace("CONFIG", str(config)) for word in arguments.split(" ")]
    assert words in one_line(dprec(*typed), code)
    assert not list(tmp_path.rglob("summary.json"))


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            MemoryError("Unable to allocate 9 GiB"),
            f"not enough memory (Unable to allocate 9 GiB): what helps is {LESS_MEMORY}",
        ),
        (OSError(28, "No space left on device", "x/y"), "x/y: No space left on device"),
    ],
)
def test_a_run_for_which_memory_or_the_disk_is_short_says_how_to_go_on(
    dprec: Any, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, line: str
) -> None:
    def short(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(sys.modules["simulation.execution"], "run_in", short)
    finished = dprec("run", config, "-o", tmp_path / "run", "--no-page")
    again = f"dprec: nothing is finished; the same command with --resume -o {tmp_path / 'run'} begins again\n"
    assert (finished.code, finished.err) == (1, f"{again}dprec: {line}\n")


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
    again = f"dprec: nothing is finished; the same command with --resume -o {tmp_path / 'run'} begins again\n"
    assert (finished.code, finished.err) == (130, notice + again + "dprec: interrupted\n")
    finished = dprec(*command)
    assert (finished.code, finished.err) == (0, "")


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (
            MemoryError("Unable to allocate 89 GiB"),
            1,
            "(Unable to allocate 89 GiB): what helps is",
        ),
        (OSError(28, "No space left on device"), 1, "No space left on device"),
        (OSError(28, "No space left on device", "/o/x.csv"), 1, "dprec: /o/x.csv: No space left on device"),
        (OSError(36, "File name too long", "a" * 5000), 2, f"{'a' * 80}...: a name that is too long"),
        (PermissionError(13, "Permission denied", "/x"), 2, "/x: Permission denied; accepted: a "),
    ],
)
def test_what_stops_a_run_from_outside_is_one_line(
    dprec: Any, config: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, words: str
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(simulation, "run", stopped)
    assert words in one_line(dprec("run", config, "-o", "/nowhere"), code)


FAILING = """
from dataclasses import dataclass
import numpy as np
from dprec.federated import FederatedModel

@dataclass(frozen=True, kw_only=True)
class Failing(FederatedModel):
    where: str

    def start(self, n_items, scale, random):
        return (np.zeros(n_items),)

    def updates(self, parameters, profiles):
        if self.where == "device" and profiles.n_users == 40:
            return looked_up("user")
        return (np.zeros((profiles.n_users, profiles.n_items)),)

    def step(self, parameters, update, round_index):
        if round_index == 2 and self.where != "device":
            return looked_up("step") if self.where == "server" else None
        return parameters

    def predictor(self, parameters, profiles):
        return lambda users, items: np.ones(users.size)

def looked_up(key):
    return {}[key]
"""


@pytest.fixture
def failing(tmp_path: Path, tiny: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a configuration with a model that fails, as its setting says, on a device or on the server."""
    (tmp_path / "own_failing.py").write_text(FAILING)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "own_failing", raising=False)
    budget = {"epsilon": 1.0, "delta": 1e-5, "per": "user", "composition": "pld"}
    model = {"kind": "own_failing:Failing", "where": "device"}
    tiny["protocol"] = {"kind": "federated", "rounds": 2, "clip": 1.0, "privacy": budget, "model": model}
    tiny["simulation"]["users_per_node"] = "all"
    path = tmp_path / "failing.yaml"
    path.write_text(yaml.safe_dump(tiny))
    return path


@pytest.mark.parametrize(
    ("where", "code", "name", "raised", "said"),
    [
        ("device", 1, "updates", "KeyError: 'user'", "a node failed: {}"),
        (
            "server",
            2,
            "step",
            "KeyError: 'step'",
            "own_failing:Failing: {}; accepted: code that raises no excep",
        ),
    ],
)
def test_an_exception_of_ones_own_code_is_shown_where_it_is(
    dprec: Any, failing: Path, tmp_path: Path, where: str, code: int, name: str, raised: str, said: str
) -> None:
    setting, file = f"protocol.model.where={where}", tmp_path / "own_failing.py"
    finished = dprec("run", failing, "-o", tmp_path / "run", "--quiet", "--set", setting)
    *frames, last = (
        f'  File "{file}", line {number}, in {function}\n    {line.strip()}'
        for function, words in ((name, "return looked_up("), ("looked_up", "return {}[key]"))
        for number, line in enumerate(FAILING.splitlines(), 1)
        if words in line and (function == "looked_up" or raised.split("'")[1] in line)
    )
    place = re.search(r"line \d+", last)
    assert place is not None
    *trace, line = finished.err.splitlines()
    assert trace == ["Traceback (most recent call last):", *"\n".join([*frames, last, raised]).splitlines()]
    assert line.startswith(f"dprec: {said.format(f'{raised} (own_failing.py, {place[0]})')}")
    assert finished.code == code
    whole = dprec("run", failing, "-o", tmp_path / "again", "--quiet", "--debug", "--set", setting)
    assert whole.code == code
    assert whole.err.endswith(finished.err)
    assert "/simulation/verbs.py" in whole.err.removesuffix(finished.err)


def test_a_comparison_of_which_nothing_runs_says_where_ones_own_code_raised(
    dprec: Any, failing: Path, tmp_path: Path
) -> None:
    protocol = yaml.safe_load(failing.read_text())["protocol"]
    compared = comparison_of(failing, {"name": "mine", "protocol": protocol})
    finished = dprec("compare", compared, "-o", tmp_path / "out", "--no-page")
    assert (finished.code, finished.out) == (1, f"comparison directory: {tmp_path / 'out'}\n")
    line = finished.err
    *_, place = (number for number, words in enumerate(FAILING.splitlines(), 1) if "return {}[key]" in words)
    said = f"a node failed: KeyError: 'user' (own_failing.py, line {place})"
    assert line.startswith("dprec: 1 of 1 cells failed, mine-")
    assert line.endswith(f": {said}; the same command with --resume -o {tmp_path / 'out'} runs them again\n")


@pytest.mark.thorough
def test_on_ray_as_well(dprec: Any, failing: Path, tmp_path: Path) -> None:
    local = dprec("run", failing, "-o", tmp_path / "local", "--quiet")
    on_ray = dprec("run", failing, "-o", tmp_path / "ray", "--quiet", "--set", "simulation.backend=ray")
    assert (on_ray.code, on_ray.err) == (1, local.err)


def test_a_cluster_that_is_none_is_refused_before_anything_is_written(
    dprec: Any, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "nonsense")
    out, quiet = ["-o", tmp_path / "out", "--quiet"], ["--set", "simulation.backend=ray"]
    for command in (["run", config, *out, *quiet], ["compare", comparison_of(config), *out, *quiet]):
        assert "RAY_ADDRESS: nonsense (no HOST:PORT)" in one_line(dprec(*command), 2)
        assert not (tmp_path / "out").exists()
    assert dprec("run", config, *out).code == 0


def comparison_of(config: Path, system: Any = "item-average") -> Path:
    """Write a comparison of one system on the data of a run."""
    given = yaml.safe_load(config.read_text())
    shared = {key: given[key] for key in ("dataset", "split", "simulation")}
    values = {"name": "compared", "protocols": [system], "epsilons": [1.0], "baselines": False, **shared}
    path = config.with_name("compared.yaml")
    path.write_text(yaml.safe_dump(values))
    return path


def test_code_of_ours_that_was_upset_by_what_ones_own_returned_says_what_is_accepted(
    dprec: Any, failing: Path, tmp_path: Path
) -> None:
    command = ["run", failing, "-o", tmp_path / "run", "--quiet", "--set", "protocol.model.where=nowhere"]
    said = "own_failing:Failing: step returned NoneType; accepted: a tuple of arrays, also where it is one"
    assert one_line(dprec(*command), 2).strip() == f"dprec: {said}"


def test_a_list_of_nothing_in_particular_has_the_presets_in_groups_and_what_else_can_be_listed(
    dprec: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    finished = dprec("list")
    assert (finished.code, finished.err) == (0, "")
    *groups, last = finished.out.split("\n\n")
    assert [group.splitlines()[0] for group in groups] == [
        "published systems: dprec run NAME",
        "ours as stated: trust model, unit, item set",
        "ours in the local model: a user's whole profile",
        "ours in the local model: all values of a user, the item set revealed",
        "ours in the local model: one rating, given or not",
        "ours in the local model: the value of one rating",
        "ours in the shuffle model: a user's whole profile",
        "ours in the shuffle model: the value of one rating",
        "ours in the secure-aggregation model: a user's whole profile",
        "ours in the central model: a user's whole profile",
        "ours in the central model: the value of one rating",
        "baselines, and references without privacy",
        "comparisons: dprec compare NAME",
        "experiments, of papers and our own",
        "components of configurations: dprec list NAME",
    ]
    lines = [line for group in groups for line in group.splitlines()[1:]]
    assert sorted(line.split()[0] for line in lines) == sorted([*presets(), *LISTINGS.keys() - {"presets"}])
    assert max(map(len, finished.out.splitlines())) <= 100
    assert (
        "  blp-mf                    Bounded Laplace on the device (Neera et al.), biased matrix ..." in lines
    )
    assert "dprec describe NAME" in last


def test_the_help_has_every_command_in_a_group_with_a_whole_sentence(dprec: Any) -> None:
    said = dprec("--help").out
    commands, groups = said.partition("Run and compare:")[2], ("Test what is promised", "Look at results")
    assert all(f"\n{group}:\n" in commands for group in (*groups, "Write a configuration"))
    lines = [line for line in commands.splitlines() if line.startswith("  ")]
    named = [command.name or command.callback.__name__ for command in app.registered_commands]  # type: ignore[union-attr]
    assert sorted(line.split()[0] for line in lines) == sorted(named)
    assert [line for line in lines if not line.endswith(".") or line.endswith("...") or len(line) > 80] == []


def test_the_configuration_of_a_run_is_described(dprec: Any, config: Path, tmp_path: Path) -> None:
    dprec("run", config, "-o", tmp_path / "run", "--no-page", "--quiet")
    described = [dprec("describe", tmp_path / name, "--json").out for name in ("tiny.yaml", "run")]
    assert described[0] == described[1]
    assert json.loads(described[0])["name"] == "tiny"


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("presets", list(presets())),
        ("mechanisms", [kind_of(each) for each in MECHANISMS]),
        ("protocols", [kind_of(each) for each in PROTOCOLS]),
    ],
)
def test_listings_name_every_component(dprec: Any, what: str, names: list[str]) -> None:
    finished = dprec("list", what)
    assert finished.code == 0
    assert [name for name in names if name not in finished.out] == []


def test_the_schema_and_the_version_are_printed(dprec: Any) -> None:
    run, comparison = (json.loads(dprec("schema", *option).out) for option in ([], ["--comparison"]))
    assert (run["title"], comparison["title"]) == ("RunConfig", "ComparisonConfig")
    for schema in (run, comparison):
        assert [key for key, about in schema["properties"].items() if "description" not in about] == []
    assert dprec("--version").out == f"dprec {__version__}\n"


def test_the_installed_command(config: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dprec", "run", str(config), "--set", "seed=x"]
    bad = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS, cwd=tmp_path
    )
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == "dprec: --set seed: 'x'; accepted: an integer\n"


def test_a_description_fits_a_narrow_terminal_and_names_what_is_beyond_the_paper(dprec: Any) -> None:
    finished = dprec("describe", "x-map-shrunk")
    assert (finished.code, finished.err) == (0, "")
    lines = finished.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("guarantee") and "claimed" in line for line in lines)
    assert "  - replacement.transfer is deviation; published: rating (guerraoui2017, section" in finished.out
    assert "beyond the paper: nothing" in dprec("describe", "x-map").out
    values = json.loads(dprec("describe", "blp-mf", "--set", "protocol.privacy.epsilon=3", "--json").out)
    assert values["sent"]["epsilon"] == pytest.approx(3, abs=1e-9)


def test_a_component_is_described(dprec: Any) -> None:
    assert dprec("describe", "bounded-laplace").out.startswith("bounded-laplace: a mechanism [neera2023]")
    (component,) = json.loads(dprec("describe", "dprec.mechanisms:Laplace", "--json").out)
    assert (component["kind"], component["settings"][0]["default"]) == ("laplace", 256)
    # A name that is a preset's too is the preset; the kind is asked for with its registry.
    assert dprec("describe", "x-map").out.startswith("x-map: ")
    assert "a protocol" in dprec("describe", "protocols/x-map").out


def test_a_shell_is_offered_what_can_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.yaml").write_text("")
    monkeypatch.chdir(tmp_path)
    assert configurations("mi") == ["mine.yaml"]
    assert set(configurations("blp-m")) == {"blp-mf", "blp-mog-mf"}
    assert "bounded-laplace" in presets_and_kinds("bounded")


def test_integers_are_read_in_every_usual_form() -> None:
    assert {integer(text) for text in ("100000", "100_000", "1e5", "100000.0")} == {100_000}
    for text in ("1.5", "1e-1", "many", "", "inf", "nan", "1e999"):
        with pytest.raises(typer.BadParameter, match="is not an integer"):
            integer(text)


def test_notes_of_a_failure_are_printed_before_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> None:
        error = RunError("no nodes")
        error.add_note("tracker x: disk full")
        raise error

    assert exit_code(fails) == 1
    assert capsys.readouterr().err == "dprec: tracker x: disk full\ndprec: no nodes\n"
