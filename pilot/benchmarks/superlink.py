"""A SuperLink on this machine with TLS and SuperNode authentication, for measurements on the wire."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from socket import create_connection, socket
from typing import Any

START_SECONDS = 60.0

PROJECT = """
[project]
name = "wire"
version = "1.0.0"

[tool.hatch.build.targets.wheel]
packages = ["."]

[tool.flwr.app]
publisher = "dprec"

[tool.flwr.app.components]
serverapp = "serving:app"
clientapp = "serving:{client}"
"""


@dataclass(frozen=True)
class SuperLink:
    """A SuperLink that runs.

    Parameters
    ----------
    folder : Path
        Of its certificates, and of Flower's configuration, which names it "wire".
    port : int
    process : int
    """

    folder: Path
    port: int
    process: int

    @property
    def certificate(self) -> bytes:
        """The certificate that devices trust."""
        return (self.folder / "ca.crt").read_bytes()

    def flwr(self, *arguments: str) -> None:
        """Run a command of Flower's."""
        command = [str(Path(sys.executable).with_name("flwr")), *arguments]
        subprocess.run(command, check=True, env=_environment(self.folder), stdout=subprocess.DEVNULL)

    def register(self, name: str, public_key: bytes) -> None:
        """Enrol a device by its public key in the format of SSH."""
        path = self.folder / f"{name}.pub"
        path.write_bytes(public_key)
        self.flwr("supernode", "register", str(path), "wire")


@contextmanager
def started_superlink(folder: Path) -> Iterator[SuperLink]:
    """Start a SuperLink that keeps its files in a folder; stop it at the end."""
    _write_certificates(folder)
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    connection = f'[superlink.wire]\naddress = "127.0.0.1:{port}"\nroot-certificates = "{folder}/ca.crt"\n'
    (folder / "config.toml").write_text(connection)
    command = [str(Path(sys.executable).with_name("flower-superlink")), "--ssl-ca-certfile", "ca.crt"]
    command += ["--ssl-certfile", "server.crt", "--ssl-keyfile", "server.key"]
    command += ["--enable-supernode-auth", "--host", "127.0.0.1", "--port", str(port)]
    with (folder / "superlink.log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=_environment(folder), stdout=log, stderr=log, start_new_session=True
        )
    try:
        _await(port, process)
        yield SuperLink(folder, port, process.pid)
    finally:
        # With its ServerApps; it would wait for devices to leave.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def write_app(folder: Path, code: str, client: str = "app") -> Path:
    """Write a Flower app to a new folder, which is returned.

    Parameters
    ----------
    folder : Path
    code : str
        Of the module that holds the server's part, `app`.
    client : str
        What a SuperNode runs, in the same module; by default the server's part, where there is none.
    """
    folder.mkdir()
    (folder / "serving.py").write_text(code)
    (folder / "pyproject.toml").write_text(PROJECT.format(client=client))
    return folder


def _environment(folder: Path) -> dict[str, str]:
    quiet = ("FLWR_DISABLE_UPDATE_CHECK", "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION")
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    settings = {"FLWR_HOME": str(folder), "FLWR_TELEMETRY_ENABLED": "0", "PATH": programs}
    return {**os.environ, **settings, **dict.fromkeys(quiet, "1")}


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError("the SuperLink did not start; see superlink.log")


def _write_certificates(folder: Path) -> None:
    """Write a certificate authority's certificate, and a server's with its key, all of P-256."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    def certificate(name: str, key: Any, issuer: str, signer: Any, *extensions: Any) -> bytes:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder().public_key(key.public_key())
        builder = builder.subject_name(_name(name)).issuer_name(_name(issuer))
        builder = builder.serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=1))
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        return builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    authority, server = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    (folder / "ca.crt").write_bytes(
        certificate("dprec", authority, "dprec", authority, x509.BasicConstraints(ca=True, path_length=None))
    )
    addresses = x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))])
    (folder / "server.crt").write_bytes(certificate("server", server, "dprec", authority, addresses))
    (folder / "server.key").write_bytes(
        server.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )


def _name(common: str) -> Any:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])
