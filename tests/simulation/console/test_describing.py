"""`dprec describe --draw`: what leaves a device, as text and as SVG."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree


def test_a_configuration_is_drawn(tmp_path: Path, dprec: Any) -> None:
    finished = dprec(
        "describe", "blp-mf", "--draw", "--set", "dataset={kind: synthetic, items: 50, ratings: 9430}"
    )
    lines = finished.out.splitlines()
    arrows = [line for line in lines if line.startswith("  |") and ("->|" in line or "|<-" in line)]
    assert [arrow.endswith("->|") for arrow in arrows] == [False, True, False, True]
    assert max(map(len, lines)) <= 80
    file = tmp_path / "new" / "blp.svg"
    assert dprec("describe", "blp-mf", "-o", file).code == 0
    assert ElementTree.fromstring(file.read_text()).tag == "{http://www.w3.org/2000/svg}svg"


def test_what_ranks_by_sets_is_drawn_for_a_file_of_pairs(tmp_path: Path, dprec: Any) -> None:
    (tmp_path / "pairs.csv").write_text("user,item\n1,2\n1,3\n2,3\n")
    finished = dprec("describe", "gram-secagg", "--draw", "--set", f"dataset={tmp_path / 'pairs.csv'}")
    assert (finished.code, finished.err) == (0, "")
    assert "the server sees: noisy sums only" in finished.out


def test_a_comparison_is_described_by_what_it_runs(dprec: Any) -> None:
    finished = dprec("describe", "compare-quick")
    assert (finished.code, finished.err) == (0, "")
    first, *lines = finished.out.splitlines()
    assert first.startswith("compare-quick: Two private protocols beside their baseline, ")
    assert "epsilon    0.5, 1, 3 per rating" in "\n".join(lines)
    assert lines[-1].rstrip() == "runs       22, over 2 seeds, 1 fold"
    values = json.loads(dprec("describe", "compare-quick", "--set", "epsilons=[2]", "--json").out)
    baselines = ["nothing-sent", "global-mean", "item-average", "sets-only"]
    assert values["protocols"] == ["one-bit-on-device", "plain-mf", "blp-mf", *baselines]
    assert (values["epsilons"], values["per"], values["runs"]) == ([2.0], "rating", 14)
    mixed = dprec("describe", "compare-quick", "--set", "protocols=[blp-mf, plain-mf, dp-als]").out
    (budgets,) = (line.split(maxsplit=1)[1].strip() for line in mixed.splitlines() if line.startswith("eps"))
    assert budgets == "0.5, 1, 3 per rating (blp-mf), per user (dp-als)"
