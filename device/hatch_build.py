"""The contents of the wheel: the packages dprec and clients, and those parts of Flower that a device imports.

Flower's own distribution brings its servers, databases and command lines, with some sixty packages, to
whoever depends on it. A device imports its records, their protocol buffers and its client of HTTP. These
files are copied as they are from the installed Flower, whose version the build requires. What stands beside
this file in ``flower/`` takes the place of those that would import all else.
"""

import importlib.metadata
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FLOWER = {
    "app": "__init__ constants error message_type metadata typing user_config",
    "app/message": "__init__ array arraychunk arrayrecord configrecord context message metricrecord "
    "recorddict typeddict",
    "common": "constant serde serde_utils",
    "compat": "__init__",
    "compat/common": "__init__ typing",
    "proto": "__init__ error_pb2 fab_pb2 federation_config_pb2 fleet_pb2 heartbeat_pb2 message_pb2 node_pb2 "
    "recorddict_pb2 run_pb2 transport_pb2",
    "supercore": "__init__ constant date fab run task_identity",
    "supercore/inflatable": "__init__ inflatable_object inflatable_utils",
    "supercore/primitives": "__init__ asymmetric",
    "supercore/protobuf": "__init__ client constants",
    "supernode": "__init__ fleet_http_client",
}
"""The modules that are copied, by their packages."""

WHERE = "clients/flower"
"""In the wheel; `clients` imports from there what is not installed."""

_VERSION = '''"""The version of Flower that these files are of."""

package_name, package_version = "flwr", "{}"
'''


class DeviceBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the contents."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Say where each file of the wheel is."""
        device = Path(self.root)
        contents = {str(device.parent / package): package for package in ("dprec", "clients")}
        distribution = importlib.metadata.distribution("flwr")
        for folder, names in FLOWER.items():
            for copied in (f"flwr/{folder}/{name}.py" for name in names.split()):
                contents[str(distribution.locate_file(copied))] = f"{WHERE}/{copied}"
        for own in sorted((device / "flower").rglob("*.py")):
            contents[str(own)] = f"{WHERE}/{own.relative_to(device / 'flower').as_posix()}"
        stated = Path(self.directory) / "flower_version.py"
        stated.parent.mkdir(parents=True, exist_ok=True)
        stated.write_text(_VERSION.format(distribution.version), encoding="utf-8")
        contents[str(stated)] = f"{WHERE}/flwr/supercore/version.py"
        metadata = f"dprec_device-{self.metadata.version}.dist-info"
        contents[str(device.parent / "LICENSE")] = f"{metadata}/licenses/LICENSE"
        build_data["force_include"].update(contents)
