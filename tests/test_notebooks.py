"""The notebooks of the documentation run from top to bottom, and are stored without outputs."""

import ast
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.paths import ROOT

NOTEBOOKS = ROOT / "docs" / "notebooks"
HTML_OR_IMAGE = "_repr_html_", "_repr_png_"


def code_of(notebook: str) -> list[str]:
    """Return the code of a notebook, cell by cell."""
    cells = json.loads((NOTEBOOKS / f"{notebook}.ipynb").read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def execute(notebook: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> dict[str, Any]:
    """Run the cells and show the value that each ends with, as Jupyter does; return the names."""
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {"__name__": "__main__"}
    for code in code_of(notebook):
        body = ast.parse(code).body
        shown = body.pop() if isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), notebook, "exec"), names)
        if isinstance(shown, ast.Expr):
            value = eval(compile(ast.Expression(shown.value), notebook, "eval"), names)
            assert any(getattr(value, each)() for each in HTML_OR_IMAGE if hasattr(value, each)) or repr(
                value
            )
    assert list(folder.iterdir()) == []
    return names


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell for cell in code if cell["outputs"] or cell["execution_count"] is not None] == []
    assert len({cell["id"] for cell in cells}) == len(cells)


def test_a_first_comparison(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names = execute("first-comparison", monkeypatch, tmp_path)
    means: pd.DataFrame = names["means"]
    assert means.loc[("one-bit-on-device", 2.0), "rmse_gain_low"] > 0
    assert (means.loc["blp-mf", "rmse_gain"] < 0).all()


def test_a_mechanism_is_a_channel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names = execute("mechanism-is-a-channel", monkeypatch, tmp_path)
    true = float(names["true"] @ names["stars"].values)
    read = names["channel"].values[names["symbols"]].mean()
    by_likelihood = float(names["estimate"] @ names["stars"].values)
    assert abs(by_likelihood - true) < 0.05 < abs(read - true)
    assert np.isclose(names["own"].epsilon, 1.0)
    assert names["sizes"]["one bit"] < names["sizes"]["randomised response"]
    assert names["audited"].holds
    assert names["compared"].to_pandas()["name"].tolist()[0] == "geometric"
