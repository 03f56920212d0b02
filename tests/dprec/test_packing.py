"""Objects that travel to other processes: what arrives, and what is said where they cannot."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dprec.components import packed, unpacked
from dprec.errors import InputError
from dprec.mechanisms import MECHANISMS


def test_an_object_arrives_as_it_was() -> None:
    mechanism = MECHANISMS["bounded-laplace"](symbols=8)
    assert unpacked(packed(mechanism, "it"), "here") == mechanism


def test_what_cannot_travel_is_refused() -> None:
    with pytest.raises(InputError, match=r"^my:Class: cannot be sent to workers \(.*lock"):
        packed(threading.Lock(), "my:Class")


def test_a_module_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_gone.py").write_text("class Gone:\n    pass\n")
    with monkeypatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        from own_gone import Gone  # type: ignore[import-not-found]

        data = packed(Gone(), "own_gone:Gone")
    assert unpacked(data, "here").__class__ is Gone
    (tmp_path / "own_gone.py").unlink()
    (tmp_path / "data").write_bytes(data)
    script = "import sys; from dprec.components.user_defined import unpacked; unpacked(open(sys.argv[1], 'rb').read(), 'FILE')"
    finished = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "data")], capture_output=True, text=True, check=False
    )
    line = finished.stderr.splitlines()[-1]
    assert "FILE: cannot be imported on " in line
    assert "No module named 'own_gone'; accepted: a module that every node can import" in line
