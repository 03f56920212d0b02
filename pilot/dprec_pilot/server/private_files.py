"""What keeps the files of a pilot out of repositories: keys, secrets and ratings are nobody's to publish.

Every folder that a pilot consists of has a .gitignore that ignores all in it, wherever it is moved to. Git
adds what it tracks all the same, as of a pilot that was committed and deleted before, so such a place is
refused.
"""

import subprocess
from pathlib import Path

from dprec.errors import InputError

_PATIENCE_SECONDS = 20.0


def check_untracked(folder: Path) -> None:
    """Raise InputError if Git tracks files of a folder, which need not exist."""
    there = next((parent for parent in folder.absolute().parents if parent.is_dir()), None)
    if there is None or not any((parent / ".git").exists() for parent in (there, *there.parents)):
        return
    command = ["git", "-C", str(there), "ls-files", "-z", "--", str(folder.absolute())]
    try:
        listed = subprocess.run(command, capture_output=True, timeout=_PATIENCE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        # Where Git does not run, it adds nothing.
        return
    if tracked := listed.stdout.count(b"\0"):
        found = f"{tracked} files of it are tracked by Git, which would add them again"
        accepted = (
            f"another directory; or git rm -r --cached {folder} first, and a look at what was published"
        )
        raise InputError(str(folder), found, accepted)
