"""What a measurement leaves behind: results/NAME.md, its tables, and results/NAME.json, every single number, from which `bench/report` writes BENCHMARKING.md.

A measurement that is not a basis for a comparison (a part of the rows, a busy machine, a debug build) is a trial: it says so and goes to bench/out/results.
"""

import json
import pathlib
import re
import shlex
import sys

import machine
import report

FOLDER = machine.BENCH / "results"
TRIALS = machine.OUT / "results"


def add_arguments(parser, timed=True):
    parser.add_argument("--out", type=pathlib.Path, help="the folder to write to (bench/results; a trial: bench/out/results)")
    if timed:
        parser.add_argument("--even-if-busy", action="store_true", help="measure though other programs run: a trial, whose results are not published")


class Measurement:
    """One run of a script. `trial`: the reasons why its numbers must not be published; none for a good one."""

    def __init__(self, script, given, whole, timed=True):
        """Waits until the machine is quiet, where times are measured."""
        self.given, self.timed = given, timed
        self.trial = [] if whole else ["only a part was measured"]
        if "debug" in machine.SEAWALL.parts:
            self.trial.append("a debug build was measured")
        # A Ghost's key (ID:SECRET) is nobody's business.
        self.facts = machine.facts([script, *(shlex.quote(word) for word in sys.argv[1:] if not re.fullmatch(r"[0-9a-f]+:[0-9a-f]+", word))])
        if timed:
            idle = machine.wait_until_quiet(given.even_if_busy)
            if idle <= machine.QUIET_SHARE:
                self.trial.append(f"other programs were running (the machine was {idle * 100:.0f} % idle before the start)")
            self.facts.append(("idle before the start", f"{idle * 100:.0f} %"))
        for reason in self.trial:
            machine.say(f"a trial: {reason}")

    def folder(self):
        return self.given.out or (TRIALS if self.trial else FOLDER)

    def write(self, name, text, servers=(), **numbers):
        """`text` begins with "## TITLE"; `numbers` must be what JSON can hold."""
        print(text)
        folder = self.folder()
        folder.mkdir(parents=True, exist_ok=True)
        head, _, rest = text.partition("\n")
        title = head.lstrip("# ")
        note = "".join(f"> **A trial**: {reason}.\n" for reason in self.trial)
        (folder / f"{name}.md").write_text(f"# {title}\n\n{note + chr(10) if note else ''}{report.facts_list(self.facts)}\n\n{raised(rest).strip()}\n")
        everything = {"section": name, "title": title, "trial": self.trial, "facts": dict(self.facts), "versions": machine.versions(),
                      "servers": {server.name: server.title for server in servers}, **numbers}
        (folder / f"{name}.json").write_text(json.dumps(everything, indent=1, ensure_ascii=False) + "\n")
        machine.say(f"written to {folder / name}.md and .json")


def raised(text):
    """Headings without a gap beneath the title: a section's first are its second level, whatever level they had among others."""
    levels = [len(found) for found in re.findall(r"^(#{2,6}) ", text, re.M)]
    up = min(levels, default=2) - 2
    return re.sub(r"^#{2,6} ", lambda found: found[0][up:], text, flags=re.M)
