"""The pictures of the gallery: what is typed for each, and how those of runs are drawn anew.

python -m docs.tables.gallery       # runs what is typed, on synthetic ratings
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from docs.tables.figures import DRAWN
from docs.tables.results import DOCS, RESULTS, made_of
from docs.tables.typed import run, typed
from simulation.console.terminal import exit_code

GALLERY = DOCS / "gallery"

OF_RUNS: Mapping[str, tuple[str, str]] = {
    "sent": ("dprec describe secagg-item-effects -o sent.svg", "sent.svg"),
    "channel": ("dprec run blp-mf -o channel", "channel/figures/noise.svg"),
    "answers": ("dprec run one-bit-on-device -o answers", "answers/figures/summary.svg"),
    "rounds": ("dprec run dp-als -o rounds", "rounds/figures/rounds.svg"),
    "weeks": (
        "dprec run weekly-increments --set schedule.kind=fresh --set schedule.budget=each -o weeks",
        "weeks/figures/periods.svg",
    ),
    "users": (
        "dprec compare compare-populations --set 'epsilons=[1.0]' -o users",
        "users/figures/accuracy-users.svg",
    ),
}
"""What is typed in an empty folder for each picture of a run, and the file that then holds it."""


_SHOWN: Mapping[str, str] = {
    "sent": "Messages of a device and the server, in bytes",
    "channel": "Bounded Laplace noise by true rating",
    "answers": "Predictions, ε per user and bytes per user",
    "rounds": "ε per user after each round",
    "weeks": "Share of ratings recovered, by week",
    "users": "RMSE against the number of users",
    "ml-100k-u1-epsilon": "RMSE against ε per rating",
    "ml-100k-u1-bytes": "RMSE against bytes per user",
    "frontier-ingredients": "RMSE added by changing one ingredient",
    "field-bytes": "HR@10 against bytes up and down",
}
"""What each picture shows, to those who cannot see it."""


def picture(name: str) -> str:
    """Return what is typed for a picture, and the picture."""
    folder = GALLERY if name in OF_RUNS else RESULTS
    place = (folder / f"{name}.svg").relative_to(DOCS)
    return f"```bash\n{_typed_for(name)}\n```\n\n![{_SHOWN[name]}](docs:{place})"


def _typed_for(name: str) -> str:
    if name in OF_RUNS:
        return OF_RUNS[name][0]
    held, _, _ = name.rpartition("-")
    if held in DRAWN:  # as the page of the comparison draws it
        return made_of(held).command
    return f"python -m docs.tables    # from docs/results/{held}.csv"


def drawn(name: str, folder: Path) -> str:
    """Return a picture of a run as it is drawn now, from what is typed in an empty folder."""
    command, file = OF_RUNS[name]
    run(typed(command), folder)
    return (folder / file).read_text(encoding="utf-8")


def main() -> None:
    """Draw the pictures of runs anew, and print the paths of those that changed."""
    for name in OF_RUNS:
        path = GALLERY / f"{name}.svg"
        with tempfile.TemporaryDirectory() as folder:
            fresh = drawn(name, Path(folder))
        if not path.is_file() or fresh != path.read_text(encoding="utf-8"):
            path.write_text(fresh, encoding="utf-8")
            print(path, flush=True)


if __name__ == "__main__":
    sys.exit(exit_code(main))
