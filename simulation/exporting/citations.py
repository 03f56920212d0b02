"""The entries of BibTeX for what was run."""

import re
from collections.abc import Iterable
from importlib.resources import files

from dprec import __version__
from dprec.components import papers_of
from simulation.configuration.models import RunConfig

_DPREC = f"""@misc{{dprec,
  author = {{{{The dprec developers}}}},
  title  = {{dprec: simulated populations for private recommendation}},
  note   = {{Version {__version__}}},
  year   = {{2026}}
}}"""


def bibtex(configs: Iterable[RunConfig]) -> str:
    """Return the entries of dprec and of the papers that the data and parts of some configurations name.

    What else user-defined classes name is listed in a comment.
    """
    named = set[str]()
    for config in configs:
        parts = (
            config.dataset,
            config.protocol.picked,
            config.binarization,
            config.schedule,
            *config.attacks,
        )
        named.update(key for part in parts if part is not None for key in papers_of(part))
    by_key = references()
    entries = [entry for key, entry in by_key.items() if key in named]
    unknown = [f"% Not known to dprec: {key}" for key in sorted(named - by_key.keys())]
    return "\n\n".join([_DPREC, *entries, *unknown]) + "\n"


def references() -> dict[str, str]:
    """Return the entries of the papers that dprec cites, by their keys."""
    text = files("dprec").joinpath("references.bib").read_text(encoding="utf-8")
    matches = re.finditer(r"^@\w+\{(\w+),$.*?^\}$", text, flags=re.MULTILINE | re.DOTALL)
    return {entry[1]: entry[0] for entry in matches}
