"""The clients of HTTP/3, quic-go's in bench/go and aioquic in a virtual environment; what Seawall is measured beside, its floor and Caddy. All are made once."""

import os
import pathlib
import shlex
import subprocess
import sys

import machine

CADDY = "github.com/caddyserver/caddy/v2/cmd/caddy@v2"
AIOQUIC = "aioquic==1.7.2"


def run(words, folder, **environment):
    done = subprocess.run([str(word) for word in words], cwd=folder, env=dict(os.environ, **environment), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{shlex.join(map(str, words))} failed:\n{done.stderr[-2000:]}")


def quic_go():
    """The path of the client of bench/go."""
    built = machine.OUT / "bin" / "h3"
    run(["go", "build", "-o", built, "."], machine.BENCH / "go")
    return built


def floor():
    """The path of the floor of HTTP/3, built as Seawall is; HTTP3_FLOOR=FILE is another build."""
    if given := os.environ.get("HTTP3_FLOOR"):
        return pathlib.Path(given)
    built = machine.ROOT / "target/release/examples/http3_floor"
    if not built.exists():
        machine.say("building the floor of HTTP/3 (minutes)")
    run(["cargo", "build", "--release", "--locked", "--package", "edge", "--example", "http3_floor"], machine.ROOT)
    return built


def has_caddy():
    """Whether there is a Caddy that needs not be built first."""
    return bool(os.environ.get("CADDY_BIN")) or (machine.OUT / "bin" / "caddy").exists()


def caddy():
    """CADDY_BIN, or the last Caddy 2 there is."""
    if given := os.environ.get("CADDY_BIN"):
        return pathlib.Path(given)
    built = machine.OUT / "bin" / "caddy"
    if not built.exists():
        machine.say("building Caddy (minutes)")
        run(["go", "install", CADDY], machine.ROOT, GOFLAGS="-mod=mod", GOBIN=str(built.parent))
    return built


def caddy_version():
    """What it calls itself, or where a program from the module proxy has its version."""
    told = machine.first_line([caddy(), "version"], r"(v\d\S*)")
    return told if told != "?" else machine.first_line(["go", "version", "-m", caddy()], r"mod\s+github.com/caddyserver/caddy/v2\s+(\S+)")


def aioquic():
    """A Python that has aioquic."""
    python = machine.OUT / "aioquic" / "bin" / "python"
    if not python.exists():
        run([sys.executable, "-m", "venv", python.parents[1]], machine.ROOT)
        run([python, "-m", "pip", "install", "--quiet", AIOQUIC], machine.ROOT)
    return python
