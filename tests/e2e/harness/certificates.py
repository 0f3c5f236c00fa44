"""Certificates for tests of TLS."""

import subprocess
from pathlib import Path

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


def expired_certificate(directory: Path, name):
    """A certificate of the year 2020 and its key. Only `openssl ca` of version 3.0 can choose the times."""
    _, key = client_certificate(directory, name)
    request, certificate, database = directory / "request.pem", directory / f"{name}.pem", directory / "index.txt"
    database.write_text("")
    (directory / "ca.cnf").write_text(
        f"[ca]\ndefault_ca=own\n[own]\ndatabase={database}\nnew_certs_dir={directory}\nrand_serial=yes\n"
        "default_md=sha256\npolicy=any\n[any]\ncommonName=supplied\n"
    )
    subprocess.run(["openssl", "req", "-new", "-key", key, "-subj", f"/CN={name}", "-out", request], check=True, capture_output=True)
    sign = ["openssl", "ca", "-selfsign", "-batch", "-config", directory / "ca.cnf", "-keyfile", key, "-in", request, "-out", certificate]
    times = ["-startdate", "20200101000000Z", "-enddate", "20210101000000Z"]
    subprocess.run([*sign, *times], check=True, capture_output=True)
    return certificate, key
