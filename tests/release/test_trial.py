"""The wheel where nothing else is, and what the README says to type."""

import subprocess
import sys
from pathlib import Path

import pytest

from release.building import build, copy_sources
from release.trial import SUPPORTED, VARIABLE, Environment, pythons, written_programs
from tests.paths import ROOT

HERE = "{}.{}".format(*sys.version_info)

README = """
```bash
make demo
dprec run one -o runs/one    # a comment
dprec compare two --set dataset.path=PATH/TO/data
```
```python
# own.py
X = 1
```
```python
from own import X
```
"""


def test_what_a_readme_shows_is_written_and_typed(tmp_path: Path) -> None:
    typed = written_programs(README, tmp_path)
    assert typed[0] == ["dprec", "run", "one", "-o", "runs/one"]
    assert [words[0] for words in typed[1:]] == ["python"]
    assert (tmp_path / "own.py").read_text() == "# own.py\nX = 1\n"
    assert (tmp_path / typed[1][1]).read_text() == "from own import X\n"
    assert (tmp_path / "ratings.csv").read_text().count("\n") == (tmp_path / "pairs.csv").read_text().count(
        "\n"
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling")
    if not (ROOT / ".git").exists():
        pytest.skip("git lists the files of a distribution")
    folder = tmp_path_factory.mktemp("wheel")
    return build(copy_sources(ROOT, folder / "sources"), folder / "dist", 1_750_000_000).wheel


SMALL = "dataset={kind: synthetic, users: 40, items: 30, ratings: 400}"


@pytest.mark.thorough
def test_the_wheel_runs_where_there_is_no_checkout(wheel: Path, tmp_path: Path) -> None:
    environment = Environment.empty(tmp_path / "environment", sys.executable)
    # What dprec needs is that of these tests, without what points at the checkout.
    needed = "\n".join(path for path in sys.path if path.endswith("site-packages"))
    (environment.packages / "needed.pth").write_text(needed + "\n", encoding="utf-8")
    environment.install("--no-deps", str(wheel))
    empty = tmp_path / "empty"
    empty.mkdir()
    where = environment.run(["python", "-c", "import simulation; print(simulation.__file__)"], empty)
    assert Path(where.strip()).is_relative_to(environment.packages)
    environment.run(
        ["dprec", "run", "blp-mf", "--set", SMALL, "--set", "simulation.backend=local", "-o", "runs/one"],
        empty,
    )
    assert (empty / "runs" / "one" / "report.html").is_file()


@pytest.mark.thorough
@pytest.mark.parametrize("version", [version for version in SUPPORTED if version != HERE])
def test_the_wheel_runs_on_other_pythons(version: str, wheel: Path, tmp_path: Path) -> None:
    python = pythons().get(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here that can be run; {VARIABLE} may name one")
    environment = Environment.empty(tmp_path / "environment", python)
    try:
        environment.install("--require-hashes", "--requirement", str(ROOT / "requirements" / "run.txt"))
    except subprocess.CalledProcessError:
        pytest.skip("no package index can be asked here")
    environment.install("--no-deps", str(wheel))
    (empty := tmp_path / "empty").mkdir()
    small = ["--set", SMALL, "-o", "runs/one"]
    environment.run(["dprec", "run", "blp-mf", *small], empty)
    assert (empty / "runs" / "one" / "report.html").is_file()
