"""The main table of a comparison, in LaTeX."""

import re

import pytest

from simulation import compare, export
from simulation.exporting.latex import escaped
from tests import make

TITLE = r"50% of $x_1 & {y} ~ #2 \ ^"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    config = {
        "name": "odd",
        "title": TITLE,
        "dataset": {"kind": "synthetic", "users": 40, "items": 30, "ratings": 400},
        "split": {"kind": "holdout"},
        "epsilons": [1.0, 4.0],
        "match": {"epsilon": "user", "delta": 1e-6},
        "seeds": [1, 2],
        "protocols": ["blp-mf", {"name": "one-bit-input", "panel": "signs"}],
        "simulation": make.ON_THIS_MACHINE,
    }
    folder = tmp_path_factory.mktemp("latex") / "odd"
    compare(config, folder, page=False)
    (path,) = export(folder, "latex")
    return path.read_text(encoding="utf-8").split(r"\begin{table}")[1:]


def test_each_evaluation_has_a_table_of_whole_rows(tables: list[str]) -> None:
    assert len(tables) == 2
    assert len(set(re.findall(r"\\label\{(.*)\}", "".join(tables)))) == 2
    for table in tables:
        rows = [line for line in table.splitlines() if line.endswith(r"\\")]
        assert {len(re.split(r"(?<!\\)&", row)) for row in rows} == {7}
        assert table.count("{") - table.count(r"\{") == table.count("}") - table.count(r"\}")


def test_a_row_has_the_budget_who_is_trusted_with_what_and_the_spread_over_seeds(tables: list[str]) -> None:
    ratings, signs = tables
    assert r"$\varepsilon$ asked per user & trust & server sees & RMSE & bytes up per user, mean" in ratings
    figures = r"\d\.\d{4} \$\\pm\$ \d\.\d{4} & \d+ & \d+ \\\\"
    assert re.search(rf"^ *blp-mf & 4 & local & rated items, noise & {figures}$", ratings, re.MULTILINE)
    assert r"RMSE $\pm$ standard deviation over 2 seeds. $\delta$ = 1e-06.}" in ratings
    assert "Sign accuracy & bytes up" in signs


def test_nothing_is_taken_for_a_command(tables: list[str]) -> None:
    written = r"50\% of \$x\_1 \& \{y\} \textasciitilde{} \#2 \textbackslash{} \textasciicircum{}"
    assert written in tables[0]
    assert escaped("*[a] – ε ± 1") == r"{*}{[}a] -- $\varepsilon$ $\pm$ 1"
