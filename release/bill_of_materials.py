"""The bill of materials of a distribution: what it depends on as it was installed, as JSON of CycloneDX 1.6.

Names, versions and licences are those of the installed metadata, dependencies what the metadata require under
the markers of this Python and platform; what nothing depends on is left out.
"""

import json
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.message import Message
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

_LONGEST_LICENCE = 80
"""Characters; what is longer is the text of a licence and not its name."""

_NAMESPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")
"""Of names that are URLs (RFC 4122, appendix C)."""


def bill_of(name: str, packages: Path, hashes: Mapping[str, str], epoch: int) -> str:
    """Return the bill of an installed distribution.

    Parameters
    ----------
    name : str
        Of the distribution.
    packages : Path
        Where it is installed, with all that it depends on.
    hashes : mapping
        The SHA-256 of the files that were installed, by canonical name, where they are known.
    epoch : int
        When it was built, in seconds since 1970.

    Raises
    ------
    KeyError
        When something that is required is not installed.
    """
    found = {canonicalize_name(each.metadata["Name"]): each for each in distributions(path=[str(packages)])}
    needed = _closure(canonicalize_name(name), found)
    components = {each: _component(found[each], hashes.get(each)) for each in needed}
    own, *others = components.values()
    references = {each: component["bom-ref"] for each, component in components.items()}
    bill: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).isoformat().replace("+00:00", "Z"),
            "component": {**own, "type": "application"},
        },
        "components": sorted(others, key=lambda component: str(component["bom-ref"])),
        "dependencies": [
            {"ref": references[each], "dependsOn": sorted(references[other] for other in needed[each])}
            for each in sorted(needed)
        ],
    }
    # Of the contents, so that the same bill has the same number.
    number = uuid.uuid5(_NAMESPACE, json.dumps(bill, sort_keys=True))
    return json.dumps({**bill, "serialNumber": f"urn:uuid:{number}"}, indent=2) + "\n"


def hashes_in_report(report: str) -> dict[str, str]:
    """Return the SHA-256 of every file in a report of `pip install --report`, by canonical name."""
    return {
        canonicalize_name(each["metadata"]["name"]): each["download_info"]["archive_info"]["hashes"]["sha256"]
        for each in json.loads(report)["install"]
    }


def _closure(
    name: NormalizedName, found: Mapping[NormalizedName, Distribution]
) -> dict[NormalizedName, set[NormalizedName]]:
    """Return what a distribution depends on, directly or not, itself first: what each depends on."""
    needed: dict[NormalizedName, set[NormalizedName]] = {}
    waiting: list[tuple[NormalizedName, frozenset[str]]] = [(name, frozenset())]
    seen = set()
    while waiting:
        each, extras = waiting.pop()
        if (each, extras) in seen:
            continue
        seen.add((each, extras))
        required = list(_required(found[each], extras))
        needed.setdefault(each, set()).update(other for other, _ in required)
        waiting += required
    return needed


def _required(
    distribution: Distribution, extras: frozenset[str]
) -> Iterator[tuple[NormalizedName, frozenset[str]]]:
    """Yield what a distribution with some extras requires here, each with the extras of its own."""
    for text in distribution.requires or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in (*extras, "")):
            yield canonicalize_name(requirement.name), frozenset(requirement.extras)


def _component(distribution: Distribution, digest: str | None) -> dict[str, Any]:
    metadata: Message = distribution.metadata  # type: ignore[assignment]
    name, version = canonicalize_name(metadata["Name"]), distribution.version
    place = f"pkg:pypi/{name}@{version}"
    component: dict[str, Any] = {"type": "library", "bom-ref": place, "name": name, "version": version}
    if licences := _licences(metadata):
        component["licenses"] = licences
    if digest is not None:
        component["hashes"] = [{"alg": "SHA-256", "content": digest}]
    return {**component, "purl": place}


def _licences(metadata: Message) -> list[dict[str, Any]]:
    """Return the licence that metadata state: an expression of SPDX, or names; nothing if they are silent."""
    if expression := metadata["License-Expression"]:
        return [{"expression": expression}]
    classified = [each for each in metadata.get_all("Classifier", ()) if each.startswith("License :: ")]
    names = [each.rpartition(" :: ")[2] for each in classified]
    stated = " ".join(str(metadata["License"] or "").split())
    if not names and 0 < len(stated) <= _LONGEST_LICENCE and stated != "UNKNOWN":
        names = [stated]
    return [{"license": {"name": name}} for name in dict.fromkeys(names)]
