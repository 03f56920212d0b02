"""Every formula of the documents can be written as MathML."""

import re
from pathlib import Path

import pytest
from latex2mathml.converter import convert

from tests.documents.pages import PAGES

_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", re.DOTALL)


def formulas(path: Path) -> list[str]:
    """Return the formulas of a page, those on lines of their own included."""
    text = _CODE.sub("", path.read_text(encoding="utf-8"))
    return [alone or within for alone, within in _FORMULA.findall(text)]


WITH_FORMULAS = {name: found for name, path in PAGES.items() if (found := formulas(path))}


@pytest.mark.parametrize("page", WITH_FORMULAS)
def test_every_command_of_a_formula_is_known(page: str) -> None:
    for formula in WITH_FORMULAS[page]:
        drawn = re.sub(r"<[^>]*>", "", convert(formula))
        assert "\\" not in drawn, formula


def test_the_pages_of_systems_have_formulas() -> None:
    assert {"docs/systems/shin.md", "docs/systems/zheng.md"} <= set(WITH_FORMULAS)
