"""What keeps a release from being published."""

from pathlib import Path

from release.readiness import lacking

URLS = '[project.urls]\nDocumentation = "https://dprec.example"\n'


def documents(folder: Path, urls: str, changes: str, citation: str) -> Path:
    (folder / "pyproject.toml").write_text(f'[project]\nname = "dprec"\n{urls}', encoding="utf-8")
    (folder / "CHANGELOG.md").write_text(
        f"# Changelog\n\n{changes}\n\n## 0.0.1, 2020-01-01\n", encoding="utf-8"
    )
    (folder / "CITATION.cff").write_text(f"title: dprec\n{citation}", encoding="utf-8")
    return folder


def test_nothing_is_lacking_where_all_is_stated(tmp_path: Path) -> None:
    assert lacking(documents(tmp_path, URLS, "## 0.1.0, 2026-01-31", "date-released: 2026-01-31\n")) == []


def test_each_document_is_named(tmp_path: Path) -> None:
    lacks = lacking(documents(tmp_path, "", "## 0.1.0, unreleased", "# date-released\n"))
    assert [each.split()[0] for each in lacks] == ["pyproject.toml", "CHANGELOG.md", "CITATION.cff"]


def test_the_dates_of_both_documents_are_the_same(tmp_path: Path) -> None:
    lacks = lacking(documents(tmp_path, URLS, "## 0.1.0, 2026-01-31", "date-released: 2026-02-01\n"))
    assert lacks == ["CITATION.cff has the date 2026-02-01, CHANGELOG.md 2026-01-31"]
