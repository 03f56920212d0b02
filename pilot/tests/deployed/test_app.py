"""The app of `deployment/`: what Flower and its Hub take, and that it refuses outside a simulation."""

import importlib.util
import io
import sys
import tomllib
import zipfile
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from flwr.app import Context, Message, RecordDict
from flwr.cli.app import app as flower
from flwr.cli.app_cmd.publish import _collect_file_paths, _validate_files
from flwr.cli.build import build_fab_from_files
from flwr.cli.config_utils import load_and_validate
from flwr.cli.utils import collect_files
from flwr.common.constant import FAB_MAX_SIZE
from flwr.supercore.constant import MAX_TOTAL_BYTES
from flwr.supercore.fab_format_version import FabFormatMetadata
from typer.testing import CliRunner

import dprec
from dprec.exchange import MESSAGE_TYPES, RefusalCode
from dprec_pilot.server.superlink import write_app
from simulation.engine.session import identity_restored
from tests.paths import ROOT

# Flower's, where it packs the app.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

APP = ROOT / "pilot/dprec_pilot/app"
PACKED = {
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "dprec_pilot_app/__init__.py",
    "dprec_pilot_app/client_app.py",
    "dprec_pilot_app/server_app.py",
}
MOST_BYTES = 30_000


def settings() -> dict[str, Any]:
    return tomllib.loads((APP / "pyproject.toml").read_text(encoding="utf-8"))


def test_flower_packs_the_app_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(flower, ["build", "--app", str(APP)])
    assert result.exit_code == 0, result.output
    (bundle,) = tmp_path.iterdir()
    assert bundle.name.startswith(f"dprec.dprec-pilot.{dprec.__version__.replace('.', '-')}.")
    assert bundle.stat().st_size < MOST_BYTES < FAB_MAX_SIZE
    with zipfile.ZipFile(bundle) as packed:
        assert set(packed.namelist()) == PACKED | {".info/CONTENT"}
        for path in PACKED - {"pyproject.toml"}:  # which Flower writes anew
            assert packed.read(path) == (APP / path).read_bytes()


def test_the_bundle_is_of_format_1_for_one_flower() -> None:
    _, errors = load_and_validate(APP / "pyproject.toml")
    assert errors == []
    fab, metadata = build_fab_from_files(collect_files(APP))
    assert metadata == FabFormatMetadata(1, "1.41", "1.41.0")
    assert build_fab_from_files(collect_files(APP))[0] == fab
    with zipfile.ZipFile(io.BytesIO(fab)) as packed:
        assert packed.read("LICENSE") == (ROOT / "LICENSE").read_bytes()


def test_the_hub_takes_what_would_be_published(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_app(tmp_path / "app")
    paths = _collect_file_paths(tmp_path / "app")
    _validate_files(paths)  # raises where a limit of the Hub is exceeded
    assert {path.relative_to(tmp_path / "app").as_posix() for path in paths} == PACKED
    assert sum(path.stat().st_size for path in paths) < MOST_BYTES < MAX_TOTAL_BYTES
    assert "Skip" not in capsys.readouterr().out


def test_the_app_is_of_this_version_and_has_flower_install_nothing_by_name() -> None:
    project = settings()["project"]
    own = tomllib.loads((ROOT / "pilot" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == own["version"] == dprec.__version__
    assert f"dprec=={dprec.__version__}" in own["dependencies"]
    (needed,) = project["dependencies"]
    (flower,) = (
        line
        for line in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
        if line.startswith("flwr")
    )
    assert needed == flower.replace("[simulation]", "")


def test_what_can_be_set_is_what_the_readme_lists() -> None:
    readme = (APP / "README.md").read_text(encoding="utf-8")
    assert all(f"`{key}`" in readme for key in settings()["tool"]["flwr"]["app"]["config"])


@pytest.fixture
def client() -> ModuleType:
    """Return the module of the ClientApp, as Flower imports it."""
    found = importlib.util.spec_from_file_location("client_app", APP / "dprec_pilot_app" / "client_app.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "message_type", [*sorted(MESSAGE_TYPES), "query", "train.any", "evaluate", "reconnect"]
)
def test_every_message_is_refused(client: ModuleType, message_type: str) -> None:
    context = Context(run_id=1, node_id=7, node_config={}, state=RecordDict(), run_config={})
    with identity_restored():
        from flwr.supercore.task_identity import TaskIdentity

        TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 7
        reply = client.app(Message(RecordDict(), 7, message_type), context)
    assert (reply.error.code, reply.error.reason) == (RefusalCode.NOT_SET_UP, "NOT_SET_UP")


def test_a_server_without_dprec_pilot_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "dprec_pilot"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(
        sys, "meta_path", [PathFinder]
    )  # without the finders of packages that are being edited
    code = compile((APP / "dprec_pilot_app" / "server_app.py").read_text(), "server_app.py", "exec")
    with pytest.raises(ModuleNotFoundError, match=r"^dprec-pilot is not installed"):
        exec(code, {})
