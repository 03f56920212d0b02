"""Download of data sets from their distributors, into a cache folder.

A data set is in the cache completely or not at all: it is downloaded and unpacked next to its final
place, and moved there by a single rename.
"""

import hashlib
import http.client
import tempfile
import urllib.request
import zipfile
import zlib
from pathlib import Path

from dprec.components import kind_of
from dprec.datasets import DATASETS
from dprec.datasets.base import Source
from dprec.errors import InputError, RunError, listed
from dprec.progress import Progress, silent

_MOST_DOWNLOADED = 1 << 30
_MOST_UNPACKED = 4 << 30


def fetch(kind: str, cache: str | Path, *, url: str | None = None, progress: Progress = silent) -> Path:
    """Download a data set, unless the cache holds it; return the folder that its ``path`` should name.

    The distributor's checksum applies to another ``url`` of the same archive too. Steps of ``progress`` are
    bytes. Raises InputError when there is nothing to download from there, or the cache cannot be written, and
    RunError when the download fails, or what was received is not the expected archive. Nothing of it is left
    then.
    """
    offered = {
        kind_of(dataset): dataset.distribution for dataset in DATASETS if dataset.distribution is not None
    }
    if kind not in offered:
        found = f"{kind!r}, which is not offered for download" if kind in DATASETS.kinds else repr(kind)
        raise InputError("dataset", found, listed(list(offered), kind))
    source = offered[kind]
    url = url or source.url
    if not url.lower().startswith(("http://", "https://")):
        raise InputError("url", repr(url), "an http or https address")
    cache = Path(cache).expanduser()
    place = cache / kind
    if not place.is_dir():
        try:
            cache.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=f".{kind}-", dir=cache) as scratch:
                archive, unpacked = Path(scratch, "archive"), Path(scratch, "unpacked")
                _download(url, archive, source.md5, progress)
                _unpack(url, archive, unpacked)
                _folder(unpacked, source, url)
                try:
                    unpacked.rename(place)
                except OSError:
                    # Another process may have been faster; its copy is as good.
                    if not place.is_dir():
                        raise
        except OSError as error:
            where = str(error.filename or cache)
            raise InputError(where, error.strerror or str(error), "a folder that can be written") from error
    return _folder(place, source, str(place))


def _download(url: str, archive: Path, md5: str | None, progress: Progress) -> None:
    """Download an archive, and verify it by the checksum that the distributor publishes, if any."""
    received = 0
    # MD5 reveals a damaged or outdated file, not an attacker's.
    digest = hashlib.md5(usedforsecurity=False)
    with archive.open("wb") as file:
        try:
            with urllib.request.urlopen(url, timeout=60) as reply:
                length = reply.headers.get("Content-Length", "")
                total = int(length) if length.isdigit() else None
                while chunk := reply.read(1 << 20):
                    received += len(chunk)
                    if received > _MOST_DOWNLOADED:
                        raise RunError(f"{url}: more than {_MOST_DOWNLOADED} bytes, which no data set has")
                    file.write(chunk)
                    digest.update(chunk)
                    progress("downloading", received, total or received)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise RunError(f"{url}: could not be downloaded ({error})") from error
    if total is not None and received != total:
        raise RunError(f"{url}: the connection ended after {received} of {total} bytes")
    if md5 not in (None, digest.hexdigest()):
        raise RunError(f"{url}: MD5 {digest.hexdigest()}, but the distributor publishes {md5}")


def _unpack(url: str, archive: Path, folder: Path) -> None:
    """Unpack a zip archive that does not unpack to more than any data set."""
    try:
        with zipfile.ZipFile(archive) as members:
            # No member unpacks to more than the size that it declares, or to a place outside the folder.
            declared = sum(member.file_size for member in members.infolist())
            if declared <= _MOST_UNPACKED:
                members.extractall(folder)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OSError) as error:
        raise RunError(f"{url}: not a zip archive that can be unpacked ({error})") from error
    if declared > _MOST_UNPACKED:
        raise RunError(f"{url}: unpacks to more than {_MOST_UNPACKED} bytes, which no data set has")


def _folder(place: Path, source: Source, where: str) -> Path:
    """Return the folder of the data set among what was unpacked, the outermost if there are several."""
    files = sorted(place.rglob(source.holds), key=lambda path: (len(path.parts), path))
    if not files:
        raise RunError(f"{where}: holds no file {source.holds}")
    return files[0].parent
