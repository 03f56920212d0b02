"""The style sheet and the script inside every page, and the policy that blocks everything else."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

from simulation.pages.figures.panels import page_colours


@cache
def script() -> str:
    """Return the scripts: of tables and sections, and of what figures show when pointed at."""
    return _read("page.js") + _read("hover.js")


@cache
def style_sheet() -> str:
    """Return the colours that a page shares with its figures, light and dark, and the layout."""
    looks = [name for name in page_colours(dark_mode=False) if name.startswith("look-")]
    chips = "".join(f".{look} {{ background: var(--{look}); }}\n" for look in looks)
    return (
        f":root {{ {_colours(dark_mode=False)} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {_colours(dark_mode=True)} }} }}\n"
        f"{_read('page.css')}{_read('comparison.css')}{_read('figures.css')}{chips}"
    )


def content_security_policy() -> str:
    """Return the policy: this style sheet, this script and an empty icon, and nothing else."""
    return (
        f"default-src 'none'; img-src data:; style-src {_digest(style_sheet())}; "
        f"script-src {_digest(script())}; base-uri 'none'; form-action 'none'"
    )


def _colours(*, dark_mode: bool) -> str:
    return " ".join(f"--{name}: {value};" for name, value in page_colours(dark_mode=dark_mode).items())


def _read(name: str) -> str:
    return files("simulation.pages").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
