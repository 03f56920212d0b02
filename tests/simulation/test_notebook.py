"""What a notebook shows of results: small tables, data frames and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dprec.errors import InputError
from dprec.mechanisms import RandomizedResponse
from dprec.ratings import RatingScale
from simulation import compare, plot, run


def test_a_run_is_a_small_table_and_data_frames(tiny: dict[str, Any]) -> None:
    result = run({**tiny, "name": "a-name"})
    html = result._repr_html_()
    assert html.count("<tr>") == 2
    for words in ("a-name", "RMSE", "ε per rating", "bytes up", f"{result.summary['accuracy']['rmse']:.4f}"):
        assert words in html
    assert repr(result).splitlines()[0].split() == ["run", "a-name"]
    assert f"{result.summary['accuracy']['rmse']:.4f}" in repr(result)
    assert repr(result).splitlines()[-1].startswith("network down")
    frame = result.to_pandas()
    assert list(frame.columns) == ["user", "item", "rating", "prediction"]
    assert len(frame) == result.summary["dataset"]["test_ratings"]
    assert len(result.to_pandas("traffic")) == 40
    assert result.to_pandas("rounds")["round"].tolist() == [1]
    with pytest.raises(InputError, match="table: 'nothing'; accepted: predictions, traffic, rounds"):
        result.to_pandas("nothing")  # type: ignore[arg-type]
    assert len(plot(result).axes) == len(result.plot().axes)
    assert len(plot(result.channel).axes) >= 2  # type: ignore[arg-type]


def test_a_channel_is_drawn() -> None:
    figure = plot(RandomizedResponse().channel(RatingScale.evenly(1, 5, 1), 1.0))
    assert "Probability of what is sent" in [
        axes.get_title(loc="left") or axes.get_title() for axes in figure.axes
    ]
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def test_a_comparison_is_a_small_table_and_a_data_frame(tiny: dict[str, Any], tmp_path: Path) -> None:
    protocols = [{"name": "mine", "protocol": tiny["protocol"]}]
    values = {key: tiny[key] for key in ("dataset", "split", "simulation")}
    comparison = {**values, "name": "cmp", "epsilons": [1.0], "protocols": protocols, "baselines": False}
    result = compare(comparison, tmp_path / "out", page=False)
    assert result.to_pandas()["name"].tolist() == ["mine"]
    assert repr(result) == f"ComparisonResult(cmp: 1 of 1 runs, in {tmp_path / 'out'})"
    assert "<table>" in result._repr_html_()
    assert "mine" in result._repr_html_()
