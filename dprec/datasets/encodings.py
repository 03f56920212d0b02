"""Text in UTF-16 or UTF-32, as spreadsheets write it, read as the UTF-8 that everything else expects."""

from __future__ import annotations

import codecs

from dprec.datasets.files import Readable
from dprec.errors import InputError

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""The byte order marks by which such a file is known."""

_MARK_BYTES = 4


class _Begun:
    """A file of which the beginning was read already."""

    def __init__(self, beginning: bytes, file: Readable) -> None:
        self._beginning, self._file = beginning, file

    def read(self, size: int, /) -> bytes:
        if self._beginning:
            beginning, self._beginning = self._beginning, b""
            return beginning + self._file.read(max(0, size - len(beginning)))
        return self._file.read(size)


class _Decoded:
    """A file in another encoding, as UTF-8."""

    def __init__(self, file: Readable, encoding: str, source: str) -> None:
        self._file, self._encoding, self._source = file, encoding, source
        self._decoder = codecs.getincrementaldecoder(encoding)()

    def read(self, size: int, /) -> bytes:
        while True:
            data = self._file.read(size)
            try:
                text = self._decoder.decode(data, final=not data)
            except UnicodeDecodeError as error:
                found = f"a byte order mark of {self._encoding.upper()}, and then {error.reason}"
                raise InputError(self._source, found, "text in UTF-8") from error
            if text or not data:
                return text.encode()


def decoded(file: Readable, source: str) -> Readable:
    """Return a file as UTF-8, by the byte order mark that it begins with.

    Parameters
    ----------
    source : str
        Its name, for errors.

    Returns
    -------
    Readable
        Raises InputError as it is read where it is not in the encoding of its mark.
    """
    beginning = file.read(_MARK_BYTES)
    begun = _Begun(beginning, file)
    encoding = next((name for mark, name in _MARKS if beginning.startswith(mark)), None)
    return begun if encoding is None else _Decoded(begun, encoding, source)
