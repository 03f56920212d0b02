"""The site has a place for everything, and links of documents lead to files."""

import re

import pytest
from typer.main import get_command

from docs.extensions import completed
from docs.extensions.generated import GENERATED, expand
from simulation import RunConfig
from simulation.comparison import ComparisonConfig
from simulation.console.command_line import app
from tests.documents.pages import PAGES
from tests.paths import ROOT


def test_every_package_that_exports_names_has_a_page() -> None:
    exported = (ROOT / "tests" / "exported_names.txt").read_text(encoding="utf-8").split()
    text = "".join(path.read_text(encoding="utf-8") for page, path in PAGES.items() if "/api/" in page)
    documented = re.findall(r"automodule:: (\S+)", text)
    assert len(documented) == len(set(documented))
    assert {name.rpartition(".")[0] for name in exported} <= set(documented)


def test_every_key_and_command_is_described() -> None:
    keys, commands = expand("<!-- site: configuration -->"), expand("<!-- site: commands -->")
    for model in (RunConfig, ComparisonConfig):
        schema = model.model_json_schema()
        for part in (schema, *schema["$defs"].values()):
            for key, value in part["properties"].items():
                assert key == "kind" or f"| `{key}` |" in keys, key
                named = key == "kind" and "const" in value
                assert not named or f"### `kind: {value['const']}`" in keys, value
    listed = get_command(app).commands  # type: ignore[attr-defined]
    assert listed.keys() <= set(re.findall(r"^## `dprec (\S+)`$", commands, flags=re.MULTILINE))


def test_no_page_is_generated_from_something_unknown() -> None:
    """A line that begins with a percent sign is a comment, which a page does not show."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in PAGES.values())
    assert re.findall(r"^%.*", text, re.MULTILINE) == []
    lines = re.findall(r"^<!-- site: (.+) -->$", text, re.MULTILINE)
    assert {line.split()[0] for line in lines} == set(GENERATED)


@pytest.mark.parametrize(
    "document", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
)
def test_links_of_documents_outside_the_site_lead_to_files(document: str) -> None:
    text = re.sub(r"`[^`\n]+`", "", (ROOT / document).read_text(encoding="utf-8"))
    links = re.findall(r"\]\((?!https?:)([^)#\s]+)", text)
    here = [link for link in links if not link.startswith("pilot/") or (ROOT / "pilot").exists()]
    assert [link for link in here if not (ROOT / link).is_file()] == []


def test_what_scrolls_is_reached_by_key_and_headings_have_a_level() -> None:
    group = 'tabindex="0" role="group"'
    written = {
        '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
        '<div class="table-wrapper">': f'<div class="table-wrapper" {group} aria-label="table">',
        '<div class="highlight"><pre>': f'<div class="highlight"><pre {group} aria-label="code">',
        '<aside class="toc-drawer no-toc">': '<aside class="toc-drawer no-toc" aria-label="sections">',
        "<p>text</p>": "<p>text</p>",
    }
    for page, complete in written.items():
        assert completed(page) == completed(complete) == complete
