"""The bill of materials, of made-up distributions."""

import json
from pathlib import Path

import pytest

from release.bill_of_materials import bill_of, hashes_in_report

DIGEST = "0" * 63 + "1"


def installed(folder: Path, name: str, version: str, *lines: str) -> None:
    """Write the metadata of a distribution as an installer does."""
    own = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    own.mkdir(parents=True)
    head = [f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}", *lines]
    (own / "METADATA").write_text("\n".join(head) + "\n", encoding="utf-8")


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    for_one = ("Requires-Dist: Two[fast]>=1", 'Requires-Dist: never; python_version < "3"')
    installed(tmp_path, "one", "1.0", "License-Expression: Apache-2.0", *for_one)
    of_fast = 'Requires-Dist: three.x; extra == "fast"', 'Requires-Dist: never; extra == "slow"'
    installed(tmp_path, "Two", "2.0", "Classifier: License :: OSI Approved :: MIT License", *of_fast)
    installed(tmp_path, "three-x", "3.0", "License: " + "no name but a text " * 10, "Requires-Dist: one")
    installed(tmp_path, "unneeded", "4.0")
    return tmp_path


def test_what_is_needed_is_listed_with_what_is_known_of_it(packages: Path) -> None:
    bill = json.loads(bill_of("one", packages, {"two": DIGEST}, epoch=86_400))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["timestamp"] == "1970-01-02T00:00:00Z"
    assert bill["metadata"]["component"]["purl"] == "pkg:pypi/one@1.0"
    assert bill["metadata"]["component"]["licenses"] == [{"expression": "Apache-2.0"}]
    three, two = bill["components"]
    assert (two["name"], two["version"], two["licenses"]) == (
        "two",
        "2.0",
        [{"license": {"name": "MIT License"}}],
    )
    assert two["hashes"] == [{"alg": "SHA-256", "content": DIGEST}]
    assert three["purl"] == "pkg:pypi/three-x@3.0"
    assert "licenses" not in three
    assert "hashes" not in three
    assert {each["ref"]: each["dependsOn"] for each in bill["dependencies"]} == {
        "pkg:pypi/one@1.0": ["pkg:pypi/two@2.0"],
        "pkg:pypi/three-x@3.0": ["pkg:pypi/one@1.0"],
        "pkg:pypi/two@2.0": ["pkg:pypi/three-x@3.0"],
    }


def test_hashes_come_from_the_report_of_the_installation() -> None:
    file = {"archive_info": {"hashes": {"sha256": DIGEST}}}
    report = {"install": [{"metadata": {"name": "Two_x"}, "download_info": file}]}
    assert hashes_in_report(json.dumps(report)) == {"two-x": DIGEST}
