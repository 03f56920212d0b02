"""The frame of every page: one self-contained HTML document that asks nobody for anything."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from simulation.analysis.projection import METHOD, Projection
from simulation.pages.markup import Cell, Column, Html, element, joined, number, table
from simulation.pages.plots import Rendered, picture
from simulation.pages.style import REFERENCE, SERIES, exchanged, page_colours, size

SCRIPT = """\
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const headers = [...table.querySelectorAll("thead th")];
  headers.forEach((header, column) => {
    const button = header.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const descending = header.getAttribute("aria-sort") === "ascending";
      for (const other of headers) other.setAttribute("aria-sort", "none");
      header.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const value = (row) => row.cells[column].dataset.value;
      const compare = (a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
        const order = isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
        return descending ? -order : order;
      };
      table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compare));
    });
  });
}
"""


@dataclass(frozen=True)
class Section:
    """A part of a page.

    Parameters
    ----------
    name : str
        Its anchor.
    title : str
    content : tuple
        Markup, or text.
    """

    name: str
    title: str
    content: tuple[object, ...]


def page(title: str, kind: str, words: str, notes: Sequence[object], sections: Sequence[Section]) -> str:
    """Return a whole page.

    Parameters
    ----------
    title : str
    kind : str
        What is reported, in a word or two above the title.
    words : str
        What was run.
    notes : sequence
        What a reader must know, as text or markup.
    sections : sequence of Section
    """
    body = joined(
        element("a", "Skip to the results", href="#main", class_="skip"),
        element(
            "header",
            element("p", kind, class_="kind"),
            element("h1", title),
            element("p", words, class_="lede"),
        ),
        element(
            "main",
            _notes(notes),
            *(
                element(
                    "section",
                    element("h2", section.title, id=section.name),
                    *section.content,
                    aria_labelledby=section.name,
                )
                for section in sections
            ),
            id="main",
        ),
        element("script", Html(SCRIPT)),
    )
    style = _style()
    policy = (
        f"default-src 'none'; img-src data:; style-src {_digest(style)}; script-src {_digest(SCRIPT)}; "
        "base-uri 'none'; form-action 'none'"
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name_="color-scheme", content="light dark"),
        element("title", f"{title} – dprec"),
        element("link", rel="icon", href="data:,"),
        element("style", Html(style)),
    )
    return "<!doctype html>\n" + element("html", head, element("body", body), lang="en") + "\n"


def figures(rendered: Sequence[Rendered]) -> Html:
    """Return figures beside each other where there is room."""
    return element("div", *(picture(figure) for figure in rendered), class_="figures")


def paragraph(words: object, class_: str | None = None) -> Html:
    """Return a paragraph."""
    return element("p", words, class_=class_)


def projection_section(rows: Sequence[tuple[str, Projection]], population: float | None) -> Section:
    """Return the projected traffic of a deployment, or how to ask for it."""
    if population is None:
        asked = joined(
            "– Not asked for: ", element("code", "dprec report DIR --population 10e6"), " adds it."
        )
        return Section("projection", "Traffic of a deployment", (paragraph(asked, "dash"),))
    words = (
        f"{population:,.0f} users a day, each taking part once, with the bytes per user of the simulated "
        f"ones. {METHOD}. Deployed is what Flower's deployment engine moves for the same messages, where it "
        "was measured."
    )
    return Section(
        "projection", "Traffic of a deployment", (paragraph(words), projection_table(rows, population))
    )


def projection_table(rows: Sequence[tuple[str, Projection]], population: float) -> Html:
    """Return projections as a table."""
    columns = [
        Column("what", numeric=False),
        Column("a day"),
        Column("from", "95 % interval"),
        Column("to", "95 % interval"),
        Column("mean rate", "Mbit/s"),
    ]
    lines = [
        [
            Cell(label, label),
            Cell(size(projection.total), projection.total),
            *(Cell("–" if end is None else size(end), end) for end in (projection.low, projection.high)),
            number(projection.bits_per_second / 1e6, 2),
        ]
        for label, projection in rows
    ]
    return table(f"Projected traffic of {population:,.0f} users a day", columns, lines)


def _notes(notes: Sequence[object]) -> Html | None:
    if not notes:
        return None
    return element(
        "aside",
        element("h2", "Read this first", id="notes"),
        element("ul", *(element("li", note) for note in notes)),
        class_="notes",
        aria_labelledby="notes",
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _style() -> str:
    def tokens(dark_mode: bool) -> str:
        shared = page_colours(dark_mode)
        looks = {
            **{f"look-{place}": colour for place, colour in enumerate(SERIES)},
            "look-reference": REFERENCE,
        }
        all_tokens = {
            **shared,
            **{name: exchanged(colour) if dark_mode else colour for name, colour in looks.items()},
            **(_DARK_ONLY if dark_mode else _LIGHT_ONLY),
        }
        return "".join(f"--{name}:{value};" for name, value in all_tokens.items())

    chips = "".join(
        f".look-{place}{{background:var(--look-{place})}}" for place in [*range(len(SERIES)), "reference"]
    )
    return (
        f":root{{color-scheme:light dark;{tokens(False)}}}"
        f"@media (prefers-color-scheme:dark){{:root{{{tokens(True)}}}}}{_CSS}{chips}"
    )


_LIGHT_ONLY = {"page": "#f6f7f9", "warn": "#fff5dc", "warn-edge": "#c98a00", "hover": "#eef2f6"}
_DARK_ONLY = {"page": "#0f1317", "warn": "#2a2210", "warn-edge": "#d9a437", "hover": "#222a32"}

_CSS = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
header,main{max-width:1200px;margin:0 auto;padding:0 24px}
header{padding-top:40px}
.kind{margin:0;color:var(--muted);font-size:14px}
h1{margin:2px 0 8px;font-size:32px;line-height:1.2;font-weight:650;letter-spacing:-.01em;
overflow-wrap:anywhere}
.lede{max-width:76ch;margin:0 0 20px;font-size:17px;overflow-wrap:anywhere}
h2{margin:44px 0 12px;font-size:21px;line-height:1.3;font-weight:650}
h3{margin:0 0 8px;font-size:16px;font-weight:650}
p{max-width:76ch;overflow-wrap:anywhere}
.dash{color:var(--muted)}
.skip{position:absolute;left:-9999px;padding:8px 14px;background:var(--accent);color:var(--surface)}
.skip:focus{left:12px;top:12px;z-index:2}
a{color:var(--accent)}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
.notes{background:var(--warn);border-left:4px solid var(--warn-edge);border-radius:4px;
padding:14px 20px;margin:0 0 20px}
.notes h2{margin:0 0 4px;font-size:16px}
.notes ul{margin:0;padding-left:20px}
.notes li{margin:3px 0;font-size:15px;line-height:1.45;overflow-wrap:anywhere}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,230px),1fr));gap:1px;
margin:0 0 20px;
background:var(--surface);border:1px solid var(--rule);border-radius:6px;overflow:hidden}
.tiles div{padding:14px 16px;box-shadow:0 0 0 1px var(--rule)}
.tiles dt{color:var(--muted);font-size:13.5px;line-height:1.35}
.tiles dd{margin:2px 0 0;font-size:25px;line-height:1.25;font-weight:600;
font-variant-numeric:tabular-nums}
.tiles dd small{display:block;font-size:13.5px;font-weight:400;color:var(--muted)}
.figures{display:grid;margin-bottom:20px;
grid-template-columns:repeat(auto-fill,minmax(min(100%,500px),1fr));gap:20px}
figure{margin:0;padding:16px 18px 14px;background:var(--surface);border:1px solid var(--rule);
border-radius:6px;min-width:0}
figure.wide{grid-column:1/-1}
figure img{display:block;width:100%;height:auto}
figcaption{margin-top:8px;color:var(--muted);font-size:14px;line-height:1.45;max-width:76ch}
.scroll{overflow-x:auto;background:var(--surface);border:1px solid var(--rule);border-radius:6px;
margin:0 0 16px}
table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:10px 12px 2px;color:var(--muted);font-size:13.5px}
th,td{padding:7px 12px;text-align:left;border-bottom:1px solid var(--rule);vertical-align:top;
white-space:nowrap}
tbody tr:last-child>*{border-bottom:0}
tbody th{font-weight:600;position:sticky;left:0;background:var(--surface)}
tbody tr:hover>*{background:var(--hover)}
.number{text-align:right}
thead th{font-weight:600;color:var(--muted);vertical-align:bottom;font-size:13px}
thead small{display:block;font-size:12px;font-weight:400;line-height:1.3;white-space:normal;
min-width:9ch}
thead button{font:inherit;color:inherit;background:none;border:0;padding:0;margin:0;text-align:inherit;
cursor:pointer}
thead button span::after{content:"\\2195";margin-left:4px;opacity:.45}
[aria-sort=ascending] button span::after{content:"\\2191";opacity:1}
[aria-sort=descending] button span::after{content:"\\2193";opacity:1}
[aria-sort=ascending] button,[aria-sort=descending] button{color:var(--ink)}
.chip{display:inline-block;width:10px;height:10px;border-radius:50%;margin-right:7px}
details{margin:12px 0}
summary{cursor:pointer;color:var(--accent)}
pre{overflow-x:auto;background:var(--surface);border:1px solid var(--rule);border-radius:6px;
padding:12px 14px;font-size:13px;line-height:1.45}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
main{padding-bottom:64px}
@media (max-width:640px){tbody .long{min-width:40vw;overflow-wrap:anywhere;white-space:normal}
header,main{padding-left:14px;padding-right:14px}header{padding-top:22px}
h1{font-size:26px}.lede{font-size:16px}figure{padding:12px 10px}.notes{padding:12px 14px}
.tiles{grid-template-columns:1fr 1fr}.tiles dd{font-size:21px}}
@media print{body{background:none}figure,table{break-inside:avoid}thead button span::after{content:""}}
"""
