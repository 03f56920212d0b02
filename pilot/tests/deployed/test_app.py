"""The Flower app of a pilot: what Flower packs of it, and that it refuses outside a pilot."""

import importlib.util
import tomllib
import zipfile
from pathlib import Path

import pytest
from flwr.app import Context, Message, RecordDict
from flwr.cli.app import app as flower
from typer.testing import CliRunner

import dprec
from dprec.exchange import MESSAGE_TYPES, RefusalCode
from dprec_pilot.server.superlink import write_app
from simulation.engine.session import identity_restored
from tests.paths import ROOT

# Flower's, where it packs the app.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

APP = ROOT / "pilot/dprec_pilot/app"
MODULES = {f"dprec_pilot_app/{name}.py" for name in ("__init__", "client_app", "server_app")}
PACKED = {"pyproject.toml", "README.md", "LICENSE", *MODULES}


def test_flower_packs_the_app_of_this_version_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_app(tmp_path / "app")
    (tmp_path / "packed").mkdir()
    monkeypatch.chdir(tmp_path / "packed")
    result = CliRunner().invoke(flower, ["build", "--app", str(tmp_path / "app")])
    assert result.exit_code == 0, result.output
    (bundle,) = Path.cwd().iterdir()
    with zipfile.ZipFile(bundle) as packed:
        assert set(packed.namelist()) == PACKED | {".info/CONTENT"}
    app, own = (
        tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
        for folder in (APP, ROOT / "pilot")
    )
    assert app["project"]["version"] == own["project"]["version"] == dprec.__version__
    assert f"dprec=={dprec.__version__}" in own["project"]["dependencies"]
    readme = (APP / "README.md").read_text(encoding="utf-8")
    assert all(f"`{key}`" in readme for key in app["tool"]["flwr"]["app"]["config"])


def test_every_message_is_refused() -> None:
    found = importlib.util.spec_from_file_location("client_app", APP / "dprec_pilot_app" / "client_app.py")
    assert found is not None
    assert found.loader is not None
    client = importlib.util.module_from_spec(found)
    found.loader.exec_module(client)
    context = Context(run_id=1, node_id=7, node_config={}, state=RecordDict(), run_config={})
    for kind in [*sorted(MESSAGE_TYPES), "query", "train.any", "evaluate", "reconnect"]:
        with identity_restored():
            from flwr.supercore.task_identity import TaskIdentity

            TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 7
            reply = client.app(Message(RecordDict(), 7, kind), context)
        assert (reply.error.code, reply.error.reason) == (RefusalCode.NOT_SET_UP, "NOT_SET_UP")
