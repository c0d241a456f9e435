"""The servers that are known (crates/judges): one whose delays are computed, and a proxy that makes a distance."""

import contextlib
import os
import pathlib
import subprocess
import sys
import types

import machine


def program():
    """The path of the program, built as Seawall is; JUDGE_BIN=FILE is another build."""
    if given := os.environ.get("JUDGE_BIN"):
        return pathlib.Path(given)
    if not hasattr(program, "built"):
        machine.say("building the judges, where they are not there yet")
        done = subprocess.run(["cargo", "build", "--release", "--locked", "--package", "judges", "--example", "judge"], cwd=machine.ROOT, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"the judges cannot be built:\n{done.stderr[-2000:]}")
        program.built = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or machine.ROOT / "target") / "release/examples/judge"
    return program.built


@contextlib.contextmanager
def running(*words, core=None):
    """Starts one of them: yields its address; at the end, `counted` holds what it counted."""
    said = types.SimpleNamespace(address=None, counted="")
    words = [*(["taskset", "-c", core] if core is not None else []), program(), *words]
    process = subprocess.Popen([str(word) for word in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        said.address = process.stdout.readline().strip()
        if not said.address:
            sys.exit(f"{' '.join(map(str, words))} does not start")
        yield said
    finally:
        process.stdin.close()
        said.counted = process.stdout.read().strip()
        process.wait()


def expected(delay, rate, requests, connections):
    """{"p99": ms} that even arrivals find."""
    words = [program(), "expect", delay, rate, requests, connections]
    text = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True).stdout
    return {name: float(due) for name, due, _ in (line.split() for line in text.splitlines())}
