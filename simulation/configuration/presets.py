"""Presets: the configurations that ship with the project, found by name from anywhere."""

from difflib import get_close_matches
from pathlib import Path

from dprec.errors import InputError

_PACKAGE = Path(__file__).resolve().parents[1]


def preset_folder() -> Path:
    """Return the folder of the presets: inside an installed package, or beside the packages of a checkout."""
    shipped = _PACKAGE / "presets"
    return shipped if shipped.is_dir() else _PACKAGE.parent / "configs"


def presets() -> dict[str, Path]:
    """Return the file of every preset by its name, experiments included."""
    return {path.stem: path for path in sorted(preset_folder().rglob("*.yaml"))}


def find_configuration(config: str | Path) -> Path:
    """Return the file that a path, which takes precedence, or the name of a preset stands for.

    Raises InputError when there is neither, with the presets that have the most similar names.
    """
    path, known = Path(config), presets()
    if str(config) in known and not path.is_file():
        return known[str(config)]
    if path.exists():
        return path
    nearest = get_close_matches(path.stem, known, n=3)
    accepted = f"a file, or a preset: {', '.join(nearest) or 'see dprec list presets'}"
    raise InputError(str(config), "neither a file nor a preset", accepted)


def preset_summary(path: Path) -> str:
    """Return the first line of the comment at the top of a preset's file."""
    with path.open(encoding="utf-8") as file:
        return file.readline().removeprefix("#").strip()
