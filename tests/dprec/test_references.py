"""Papers are cited by the keys of dprec/references.bib, and nothing stands there that is not cited."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = {
    path.relative_to(ROOT): path.read_text(encoding="utf-8")
    for package in ("dprec", "clients", "strategies", "simulation", "pilot")
    for path in (ROOT / package).rglob("*.py")
}
REFERENCES = (ROOT / "dprec" / "references.bib").read_text(encoding="utf-8")
ENTRIES = re.findall(r"^@[a-z]+\{([a-z]+[0-9]{4}),$(.*?)^\}$", REFERENCES, flags=re.MULTILINE | re.DOTALL)
CITED = {key for text in SOURCES.values() for key in re.findall(r"\[([a-z]+[0-9]{4})\]", text)}


def test_every_key_has_one_entry_and_every_entry_is_cited() -> None:
    keys = [key for key, _ in ENTRIES]
    assert len(keys) == REFERENCES.count("\n@")
    assert keys == sorted(set(keys))
    assert set(keys) >= CITED
    # Some are cited by the pilot alone.
    assert set(keys) == CITED or not (ROOT / "pilot").exists()


def test_entries_name_authors_title_and_the_year_of_their_key() -> None:
    for key, fields in ENTRIES:
        assert re.search(r"\n  author +=", fields), key
        assert re.search(r"\n  title +=", fields), key
        assert re.search(rf"\n  year +=.*{key[-4:]}", fields), key


def test_authors_are_followed_by_a_key() -> None:
    bare = [
        str(path)
        for path, text in SOURCES.items()
        if re.search(r"\bet\s+al\.(?!\s+\[[a-z]+[0-9]{4}\])", text)
    ]
    assert bare == []
