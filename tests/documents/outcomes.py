"""What the code of some pages leaves behind, beside ending well."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd


def readme(names: Mapping[str, Any]) -> None:
    """The run in Python has an accuracy, and the one on the command line its own mechanism."""
    assert 0.5 < names["result"].summary["accuracy"]["rmse"] < 2.0
    assert "kind: geometric:Geometric" in Path("runs/geometric/config.yaml").read_text(encoding="utf-8")


def data(names: Mapping[str, Any]) -> None:
    """The settings of the last run are those that it names."""
    assert names["result"].config.split.kind == "k-fold"


def deployment(names: Mapping[str, Any]) -> None:
    """A pilot has a folder for every device."""
    assert len(list(Path("tmp/pilot/devices").iterdir())) == 5


def methods(names: Mapping[str, Any]) -> None:
    """Tables name user-defined components by their module and class."""
    table = pd.read_csv("runs/mine/comparison.csv")
    table = table[table["baseline"].isna()]
    assert table["name"].tolist() == ["blp-mf", "geometric", "softened", "shrunken"]
    assert table["mechanism"].tolist()[1:3] == ["geometric:Geometric", "softened:Softened"]
    assert table["completion"].tolist()[3] == "shrunken:Shrunken"
    assert set(table["dataset"]) == {"json_lines:JsonLines"}
    assert names["result"].summary["mechanism"] == "softened:Softened"
    assert names["compared"].to_pandas()["name"].tolist() == ["blp-mf", "softened"]
    assert 0.999 < names["channel"].epsilon <= 1.0
    assert names["fitted"].predict(["ann", "bob"], "film").shape == (2,)


def federated(names: Mapping[str, Any]) -> None:
    """A model of one's own stands beside the presets, with what it costs and what is proved."""
    table = pd.read_csv("runs/federated/comparison.csv").set_index("name")
    own = table.loc[["factors", "factors-local"]]
    assert set(own["status"]) == {"proved"}
    assert (own["epsilon_composed_max"] <= own["epsilon"]).all()
    assert (own["uplink_payload_mean_per_user"] > 0).all()
    assert {"dp-als", "pg-mf", "nothing-sent"} <= set(table.index)


OUTCOMES: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
    "README.md": readme,
    "docs/data.md": data,
    "docs/deployment.md": deployment,
    "docs/federated.md": federated,
    "docs/methods.md": methods,
}
