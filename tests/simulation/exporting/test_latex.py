"""The main table of a comparison, in LaTeX."""

import re
from pathlib import Path

import pytest

from simulation import compare, export
from simulation.exporting.latex import escaped, latex
from simulation.storage.files import csv_of_rows
from tests import make
from tests.results import row

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
        assert {len(re.split(r"(?<!\\)&", row)) for row in rows} == {8}
        assert table.count("{") - table.count(r"\{") == table.count("}") - table.count(r"\}")


def test_a_row_has_the_budget_who_is_trusted_with_what_and_the_spread_over_seeds(tables: list[str]) -> None:
    ratings, signs = tables
    lost = r"$\varepsilon$ per user, composed largest, $\delta$=1e-06"
    asked = r"$\varepsilon$ asked per user"
    assert rf"{asked} & {lost} & trust & server sees & RMSE & bytes up per user, mean" in ratings
    figures = r"\d\.\d{4} \$\\pm\$ \d\.\d{4} & \d+ & \d+ \\\\"
    line = rf"^ *blp-mf & 4 & 3\.999, same items & local & rated items, noise & {figures}$"
    assert re.search(line, ratings, re.MULTILINE)
    assert r"RMSE $\pm$ standard deviation over 2 seeds. $\delta$ = 1e-06.}" in ratings
    assert "Sign accuracy & bytes up" in signs


def test_nothing_is_taken_for_a_command(tables: list[str]) -> None:
    written = r"50\% of \$x\_1 \& \{y\} \textasciitilde{} \#2 \textbackslash{} \textasciicircum{}"
    assert written in tables[0]
    assert escaped("*[a] – ε ± 1") == r"{*}{[}a] -- $\varepsilon$ $\pm$ 1"


def test_lists_among_sampled_items_have_their_hit_rate_and_ndcg(tmp_path: Path) -> None:
    ranked = {"ndcg_at_10": 0.25, "sampled_ranking_ndcg_at_10": 0.5, "sampled_ranking_ndcg_at_20": 0.75}
    lines = [row("one", **ranked, sampled_ranking_hit_rate_at_10=0.125)]
    (tmp_path / "comparison.csv").write_text("".join(csv_of_rows(lines)))
    (_, table) = latex(tmp_path).split(r"\toprule")
    head, line = table.split(r"\midrule")
    assert "NDCG at 10 & Hit rate at 10, sampled & NDCG at 10, sampled & bytes up" in head
    assert "at 20" not in head
    assert "0.2500 & 0.1250 & 0.5000 & 300 & 100" in line
