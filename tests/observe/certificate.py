"""A certificate for 127.0.0.1, made by openssl for one test."""

import subprocess
from pathlib import Path


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """PEM files of a certificate that signs itself, and of its key."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    # An elliptic key: made in no time, where RSA would take up to a second.
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1"
    subprocess.run(
        [
            *command.split(),
            *("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(cert)),
        ],
        check=True,
        capture_output=True,
    )
    return cert, key
