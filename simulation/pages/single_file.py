"""A comparison as one file: its page, with the pages of runs and the files that it links to inside."""

import base64
import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote

from markupsafe import Markup, escape

from dprec.errors import InputError
from simulation.storage.directories import REPORT, TABLE

_LINK = re.compile(r'<a href="([^"#:]+)"')
"""A link to a file beside the page; text has no quotation marks, since they are escaped."""

_IDENTIFIER = re.compile(r'(?<= id=")[^"]+(?=")')
_REFERENCE = re.compile(r'(?<= )(href="#|for="|aria-[a-z]+="|[a-z-]+="url\(#)([^")]+)')

_TYPES = {".csv": "text/csv", ".svg": "image/svg+xml", ".png": "image/png"}
"""Files that a page may link to, beside those of runs."""

_LARGEST = 1 << 25
"""Bytes of the largest of them."""


def in_one_file(page: str, folder: Path) -> str:
    """Return a page with everything inside that it links to in its directory; a large file is refused."""
    if (folder / TABLE).is_file() and f'href="{TABLE}"' not in page:
        page = _before_end(page, Markup('<p>The table: <a href="{}">{}</a>.</p>\n').format(TABLE, TABLE))
    runs: dict[str, str] = {}

    def inside(link: re.Match[str]) -> str:
        target = (folder / unquote(unescape(link[1]))).resolve()
        # A page may come from anywhere; what it links to must not lead out of its directory.
        if not target.is_file() or not target.is_relative_to(folder.resolve()):
            return "<a"
        if target.name == REPORT:
            place = f"run-{len(runs) + 1}"
            if link[1] not in runs:
                runs[link[1]] = _section(place, target)
            return f'<a href="#run-{list(runs).index(link[1]) + 1}"'
        return _file(target)

    page = _LINK.sub(inside, page)
    return _before_end(page, "".join(runs.values()))


def _file(path: Path) -> str:
    """Return the beginning of a link that holds a file."""
    if path.suffix not in _TYPES:
        return "<a"
    if (size := path.stat().st_size) > _LARGEST:
        raise InputError(str(path), f"{size:,} bytes", f"{_LARGEST:,} at most in a single file")
    content = base64.b64encode(path.read_bytes()).decode()
    return str(
        Markup('<a download="{}" href="data:{};base64,{}"').format(path.name, _TYPES[path.suffix], content)
    )


def _section(place: str, path: Path) -> str:
    """Return what the page of a run says as a folded section, with identifiers of its own."""
    page = path.read_text(encoding="utf-8")
    content = page.partition('<main id="main">')[2].rpartition("</main>")[0]
    own = set(_IDENTIFIER.findall(content))
    content = _IDENTIFIER.sub(lambda match: f"{place}-{match[0]}", content)
    content = _REFERENCE.sub(
        lambda match: (
            match[1] + " ".join(f"{place}-{each}" if each in own else each for each in match[2].split(" "))
        ),
        content,
    )
    content = _LINK.sub("<a", content)
    heading = f'<h2 id="{place}">One run: {escape(path.parent.name)}</h2>'
    return (
        f'<section aria-labelledby="{place}">\n<details class="folded">\n'
        f"<summary>{heading}</summary>\n{content}</details>\n</section>\n"
    )


def _before_end(page: str, content: str) -> str:
    """Return a page with more at the end of its main part."""
    before, end, after = page.rpartition("</main>")
    return f"{before}{content}{end}{after}"
