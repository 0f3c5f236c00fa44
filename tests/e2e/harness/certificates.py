"""Certificates for tests of TLS."""

import subprocess

from harness.server import run


def certificates(directory, *names):
    """CA, certificate and key as `tacho tls self-signed` makes them; without names for localhost and its addresses."""
    run("tls", "self-signed", "--out", directory, *(part for name in names for part in ("--name", name)))
    return directory


def settings(files):
    """The environment of a server that serves TLS with these files, on free ports."""
    return {
        "TACHO_TLS_CERTIFICATE": str(files / "server.pem"),
        "TACHO_TLS_KEY": str(files / "server-key.pem"),
        "TACHO_MQTT_TLS_LISTEN": "127.0.0.1:0",
        "TACHO_HTTP_TLS_LISTEN": "127.0.0.1:0",
        "TACHO_POSTGRES_LISTEN": "127.0.0.1:0",
    }


def client_certificate(directory, name, *issuer):
    """A certificate and its key made by openssl: of an authority, or signed by one."""
    certificate, key = directory / f"{name}.pem", directory / f"{name}-key.pem"
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    make += ["-subj", f"/CN={name}", "-keyout", key, "-out", certificate, *issuer]
    subprocess.run(make, check=True, capture_output=True)
    return certificate, key
