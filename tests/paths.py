"""Where the tests find the project's folders and the real ratings."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONFIGS = ROOT / "configs"
DATA = Path(os.environ.get("DPREC_DATA", ROOT.parent / "shared" / "data"))


def preset_file(name: str) -> Path:
    """Return the file of a preset, whatever folder it is in."""
    (path,) = CONFIGS.rglob(f"{name}.yaml")
    return path
