"""The entries of BibTeX for what was run."""

import re
from typing import Any

import yaml

from dprec import __version__
from simulation import load
from simulation.exporting.citations import bibtex, references
from tests.paths import ROOT


def keys(*configs: str, **changes: Any) -> list[str]:
    return re.findall(r"^@\w+\{(\w+),", bibtex([load(config, **changes) for config in configs]), re.MULTILINE)


def test_papers_of_all_parts_are_cited_once_and_so_is_dprec() -> None:
    assert keys("dp-als", "one-bit-input") == [
        *("dprec", "chien2021", "davenport2014", "kairouz2014", "krichene2023", "li2021")
    ]
    # No noise is nobody's invention.
    assert keys("plain-mf") == ["dprec"]
    assert keys("best") == ["dprec", "kairouz2014"]


def test_published_data_are_cited_as_their_distributors_ask() -> None:
    assert keys("plain-mf", overrides=["dataset={kind: movielens-100k, path: ml-100k}"]) == [
        "dprec",
        "harper2015",
    ]


def test_schedules_and_attacks_are_parts() -> None:
    attacked = "attacks=[{kind: linkage}]"
    found = set(keys("blp-mf", overrides=[attacked])) - set(keys("blp-mf"))
    assert found == {"demontjoye2013", "narayanan2008"}


def test_the_entry_of_dprec_is_that_of_the_citation_file() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    entry = bibtex([])
    assert cited["title"] in entry
    assert f"Version {__version__}" in entry
    assert f"year   = {{{cited['date-released'].year}}}" in entry
    assert cited["authors"] == [{"name": "The dprec developers"}]
    assert "{{The dprec developers}}" in entry


def test_every_entry_is_whole() -> None:
    text = (ROOT / "dprec" / "references.bib").read_text(encoding="utf-8")
    assert len(references()) == text.count("\n@")
    assert all(entry.count("{") == entry.count("}") for entry in references().values())
