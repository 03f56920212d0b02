"""The site has a place for everything: pages, packages, keys and commands."""

import re

import pytest
from typer.main import get_command

from docs.extensions.generated import GENERATED, expand
from docs.tables.results import systems
from simulation import RunConfig
from simulation.comparison import ComparisonConfig
from simulation.console.command_line import app
from tests.documents.pages import PAGES
from tests.paths import ROOT

EXPORTED = (ROOT / "tests" / "exported_names.txt").read_text(encoding="utf-8").split()


def test_every_package_that_exports_names_has_a_page() -> None:
    text = "".join(path.read_text(encoding="utf-8") for page, path in PAGES.items() if "/api/" in page)
    documented = re.findall(r"automodule:: (\S+)", text)
    assert len(documented) == len(set(documented))
    assert {name.rpartition(".")[0] for name in EXPORTED} <= set(documented)


def test_every_key_of_a_configuration_is_described() -> None:
    text = expand("% generated: configuration")
    for model in (RunConfig, ComparisonConfig):
        schema = model.model_json_schema()
        for part in (schema, *schema["$defs"].values()):
            for key, value in part["properties"].items():
                assert key == "kind" or f"| `{key}` |" in text, key
                assert "const" not in value or f"### `kind: {value['const']}`" in text, value


def test_every_command_is_described() -> None:
    text = expand("% generated: commands")
    commands = get_command(app).commands  # type: ignore[attr-defined]
    assert commands.keys() <= set(re.findall(r"^## `dprec (\S+)`$", text, flags=re.MULTILINE))


def test_no_page_is_generated_from_something_unknown() -> None:
    lines = [
        line.split()
        for path in PAGES.values()
        for line in re.findall(r"^% generated: (.+)$", path.read_text(), re.M)
    ]
    assert {name for name, *_ in lines} == set(GENERATED)


def test_the_page_of_a_system_draws_what_leaves_a_device() -> None:
    for name, system in systems().items():
        page = (ROOT / "docs" / "systems" / f"{name}.md").read_text(encoding="utf-8")
        assert f"% generated: drawing {system.presets[0]}\n" in page
    drawing = expand("% generated: drawing blp-mog-mf")
    assert drawing.startswith("```{raw} html\n<svg ")
    assert drawing.endswith("</svg>\n```")


def test_the_pages_of_the_configuration_describe_all_of_it_once() -> None:
    pages = [path.read_text() for page, path in PAGES.items() if page.startswith("docs/configuration")]
    text = "\n".join(map(expand, pages))
    whole = re.findall(r"^#+ .+$", expand("% generated: configuration"), re.M)
    described = [head for head in re.findall(r"^#+ .+$", text, re.M) if head in whole]
    assert sorted(described) == sorted(whole)


def test_links_are_named_by_titles() -> None:
    links = [
        (page, text)
        for page, path in PAGES.items()
        for text in re.findall(r"(?<!!)\[([^\]\n]*)\]\([^)\s]*\.md[^)\s]*\)", path.read_text())
        if page != "docs/formats.md"
    ]
    assert links
    unclear = re.compile(r"|here|this|why|what|how|.*\.md`?")
    assert [link for link in links if unclear.fullmatch(link[1])] == []


def test_continuous_integration_builds_the_site() -> None:
    assert "make docs" in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    "document", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
)
def test_links_of_documents_outside_the_site_lead_to_files(document: str) -> None:
    text = re.sub(r"`[^`\n]+`", "", (ROOT / document).read_text(encoding="utf-8"))
    links = re.findall(r"\]\((?!https?:)([^)#\s]+)", text)
    here = [link for link in links if not link.startswith("pilot/") or (ROOT / "pilot").exists()]
    assert [link for link in here if not (ROOT / link).is_file()] == []
