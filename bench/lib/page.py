"""BENCHMARKING.md from the numbers in bench/results: which rows the summary has, from which sections, and when they must not be published.

Nothing here measures, and no number is typed in by hand: the sentences that a reader takes away are made from the same values as the table.
"""

import dataclasses
import json
import statistics

import chart
import report

NEEDED, OPTIONAL = ("servers", "static", "tls", "crowd"), ("http3", "ghost", "wordpress", "load")
NOT_MEASURED, NOT_THERE, NOT_VALID = "not measured", "–", "not valid"


@dataclasses.dataclass(frozen=True)
class Row:
    """One row of the summary: where it is found, and who plays which part in it. `part` of Seawall and `others` are names of servers in that section."""

    title: str
    section: str
    row: str
    seawall: str = "seawall"
    nginx: str | None = "nginx-cache"
    others: tuple = ()
    floor: str | None = None
    key: str = "cpu_us"
    digits: int = 1


CACHES = ("h2o", "haproxy", "varnish")
ROWS = [
    Row("Hit, 64 connections", "servers", "hit-64", others=CACHES, floor="floor"),
    Row("Hit, 500 connections", "servers", "hit-500", others=CACHES, floor="floor"),
    Row("Hit, browsers' heads, never the same twice", "servers", "browsers-64", others=CACHES, floor="floor"),
    Row("304 Not Modified", "servers", "304-64", others=CACHES, floor="floor-304"),
    Row("Hit over TLS, HTTP/1.1", "tls", "h1-64", others=("h2o",)),
    Row("Hit over TLS, HTTP/2", "tls", "h2", others=("h2o",)),
    Row("Full TLS handshake, ECDSA P-256", "tls", "full-p256", others=("h2o",), digits=0),
    Row("Hit over HTTP/3 ¹", "http3", "8k", nginx="nginx", others=("caddy",), floor="floor"),
    Row("Static file of 8 KB", "static", "8k", nginx="nginx", others=("h2o",), floor="floor"),
    Row("Static file of 100 KB", "static", "100k", nginx="nginx", others=("h2o",), floor="floor"),
    Row("Range of 64 KB", "static", "range", nginx="nginx", others=("h2o",), floor="floor"),
    Row("Pass-through, not cached", "servers", "pass-64", others=("haproxy", "varnish")),
    Row("Miss, as each ships ²", "servers", "miss-64", others=("haproxy", "varnish")),
    Row("Miss, kept in memory alone ²", "servers", "miss-64", seawall="seawall-plain", nginx=None, others=("haproxy", "varnish")),
    Row("Real Ghost, stored front page", "ghost", "warm front", nginx="nginx-ghost", floor="floor"),
    Row("Real WordPress, stored front page, gzip", "wordpress", "front-64", nginx="nginx"),
    Row("PHP asked each time, over FastCGI", "wordpress", "php-8k", nginx="nginx"),
]
CROWD = Row("1,000 readers, one cold page: lag of the last, ms ³", "crowd", "stored", nginx="nginx-ghost", others=("varnish",), key="lag_last_ms", digits=0)
# HAProxy lets all of them through to the origin: it is on the chart, where that is said, and not the best of anything.
CROWD_OF_ALL = dataclasses.replace(CROWD, others=("varnish", "haproxy"))
SHORT = {"h2o": "h2o", "haproxy": "HAProxy", "varnish": "Varnish", "caddy": "Caddy"}


class Unfit(Exception):
    """The numbers must not be published; the text says why and what to do."""


def load(folder):
    """{section: what its JSON holds}"""
    found = {}
    for name in (*NEEDED, *OPTIONAL):
        path = folder / f"{name}.json"
        if path.exists():
            found[name] = json.loads(path.read_text())
    return found


def measured_as(section):
    """What must be the same for all that stands on one page. Local changes, such as the page itself, count as far as they are in the program that was measured."""
    facts = section["facts"]
    return facts["commit"].removesuffix(" with local changes"), facts["program"], facts["machine"]


def without_strangers(sections):
    """The sections without those optional ones that were measured otherwise than the needed ones: their rows are not measured then, rather than mixed."""
    needed = {measured_as(sections[name]) for name in NEEDED if name in sections}
    return {name: section for name, section in sections.items() if name in NEEDED or measured_as(section) in needed}


def check(sections, trial=False, mixed=False):
    """Raises Unfit for what must not be published: missing sections, trials, several commits. Returns the warnings that the page must carry."""
    missing = [name for name in NEEDED if name not in sections]
    if missing:
        raise Unfit(f"not measured yet: {', '.join(missing)}; `make bench` measures all of it")
    trials = [f"{name}: {reason}" for name, section in sections.items() for reason in section["trial"]]
    if trials and not trial:
        raise Unfit("these are trials, which are not published:\n  " + "\n  ".join(trials))
    warnings = ["**This is a trial and says nothing about speed.** " + "; ".join(trials) + "."] if trials else []
    commits = {name: measured_as(section) for name, section in sections.items()}
    if len(set(commits.values())) > 1:
        list_ = ", ".join(f"{name} {commit} (program {program}, {machine})" for name, (commit, program, machine) in commits.items())
        if not (mixed or trial):
            raise Unfit(f"the sections are of different commits, programs or machines: {list_}. `make bench` measures all of them; --mixed publishes them with a warning")
        warnings.append(f"**Sections of different commits, programs or machines**: {list_}. Compare within a row only.")
    return warnings


class Numbers:
    """The values of one section by row and server: medians over the rounds that are valid."""

    def __init__(self, section):
        self.section = section
        self.cells = {}
        for cell in section["cells"]:
            self.cells.setdefault((cell["row"], cell["server"]), []).append(cell)

    def rounds(self, row, server, key):
        """{round: value} of the valid rounds; None where there is no such cell at all."""
        cells = self.cells.get((row, server))
        return None if cells is None else {cell["round"]: cell[key] for cell in cells if not cell.get("faults") and cell.get(key) is not None}

    def value(self, row, server, key):
        found = self.rounds(row, server, key)
        return statistics.median(found.values()) if found else None

    def ratio(self, row, server, to, key):
        """The median of the ratios within a round: what the machine did in that minute, it did to both."""
        mine, theirs = self.rounds(row, server, key) or {}, self.rounds(row, to, key) or {}
        both = [mine[at] / theirs[at] for at in mine if theirs.get(at)]
        return statistics.median(both) if both else None


@dataclasses.dataclass
class Figures:
    """A row of the summary with its values: {part: (value, ratio to Seawall, name)}, part being seawall, nginx, nginx-new, other or floor."""

    row: Row
    parts: dict

    def value(self, part):
        return self.parts[part][0] if part in self.parts else None


def figures(row, numbers):
    """None when the section was not measured."""
    if row.section not in numbers:
        return None
    mine = numbers[row.section]
    def of(server):
        value = mine.value(row.row, server, row.key)
        return None if value is None else (value, mine.ratio(row.row, server, row.seawall, row.key), server)
    others = [found for found in map(of, row.others) if found]
    new = f"{row.nginx}-new" if row.nginx else None
    named = {"seawall": row.seawall, "nginx": row.nginx, "nginx-new": new, "floor": row.floor}
    parts = {part: of(server) for part, server in named.items() if server} | {"other": min(others) if others else None}
    return Figures(row, {part: found for part, found in parts.items() if found})


def cell(part, figured, numbers, best):
    """What stands in the table: the value, how many times Seawall's that is, and for the best other its name."""
    row = figured.row
    if part not in figured.parts:
        server = {"nginx": row.nginx, "nginx-new": f"{row.nginx}-new" if row.nginx else None, "seawall": row.seawall, "floor": row.floor}.get(part)
        if server and numbers[row.section].rounds(row.row, server, row.key) == {}:
            return NOT_VALID
        return NOT_MEASURED if part == "nginx-new" and row.nginx and not any(name.endswith("-new") for name in numbers[row.section].section["servers"]) else NOT_THERE
    value, ratio, server = figured.parts[part]
    told = report.number(value, row.digits)
    told = f"**{told}**" if part == best else told
    if part == "other":
        told = f"{SHORT.get(server, server)} {told}"
    return told if part == "seawall" or ratio is None else f"{told} ({ratio:.2f}×)"


PARTS = ("seawall", "nginx", "nginx-new", "other", "floor")


def best_of(figured):
    """Who needs least, the floor aside, which does not serve anybody."""
    return min((part for part in PARTS[:-1] if part in figured.parts), key=lambda part: figured.parts[part][0], default=None)


def summary(sections, numbers):
    versions = next(iter(sections.values()))["versions"]
    newest = versions.get("nginx, newest")
    head = ["CPU µs per request", "Seawall", f"nginx {versions.get('nginx', '')} (Debian)".replace("  ", " "), f"nginx {newest}" if newest else "nginx, newest", "best other", "floor"]
    lines = []
    for row in [*ROWS, CROWD]:
        found = figures(row, numbers)
        if found is None:
            lines.append([row.title, NOT_MEASURED, *[NOT_THERE] * 4])
        else:
            lines.append([row.title, *(cell(part, found, numbers, best_of(found)) for part in PARTS)])
    return report.table(head, lines)


# What a request costs who makes it: the rows of bench/load.
LOADS = (("h1-64", "HTTP/1.1, 64 connections"), ("h1-500", "HTTP/1.1, 500 connections"), ("h1-10000", "HTTP/1.1, 10,000 connections"), ("h1s-64", "HTTP/1.1 over TLS, 64 connections"),
         ("h2", "HTTP/2, 32 connections of 10 streams"), ("h3", "HTTP/3, 32 connections of 10 streams"))
GENERATORS = ("seawall", "wrk", "ab", "h2load")


def loads(numbers):
    """The table of generators: their own processor time for a request."""
    if "load" not in numbers:
        return f"{NOT_MEASURED[0].upper()}{NOT_MEASURED[1:]} at this commit: `make bench SECTIONS=load`."
    mine, lines = numbers["load"], []
    for row, title in LOADS:
        values = {name: mine.value(row, name, "cpu_us") for name in GENERATORS}
        there = {name: value for name, value in values.items() if value is not None}
        if not there:
            continue
        def told(name):
            if name not in there:
                return NOT_THERE
            text = report.number(there[name], 1)
            text = f"**{text}**" if there[name] == min(there.values()) else text
            return text if name == "seawall" else f"{text} ({mine.ratio(row, name, 'seawall', 'cpu_us') or 0:.2f}×)"
        lines.append([title, *map(told, GENERATORS)])
    return report.table(["CPU µs of the generator a request", "seawall bench", "wrk", "ab", "h2load"], lines)


def where_another_is_better(numbers):
    """A line for each row in which somebody needs less than Seawall; within five per cent counts as even."""
    lines = []
    for row in [*ROWS, CROWD]:
        found = figures(row, numbers)
        if not found or "seawall" not in found.parts:
            continue
        better = [(value, ratio, server) for part, (value, ratio, server) in found.parts.items() if part not in ("seawall", "floor") and ratio is not None and ratio < 0.95]
        if better:
            called = numbers[row.section].section["servers"]
            lines.append(f"- {row.title.rstrip(' ¹²³')}: " + ", ".join(f"{called.get(server, server)} {ratio:.2f}×" for _, ratio, server in sorted(better)))
    return "How many times Seawall's cost, where it is less by more than five per cent:\n\n" + "\n".join(lines) if lines else "In none of these rows by more than five per cent."


def lead(sections, numbers):
    """The lines that a reader takes away."""
    hit, busy = figures(ROWS[0], numbers), figures(ROWS[2], numbers)
    facts = next(iter(sections.values()))["facts"]
    days = " and ".join(sorted({section["facts"]["date"] for section in sections.values()}))
    idle = min((section["facts"]["idle before the start"] for section in sections.values()), key=lambda share: int(share.split()[0]))
    lines = [f"- **Machine**: {facts['machine']}; at least {idle} idle before each section. Commit **{facts['commit']}**, {days}."]
    text = []
    for words, found in (("a hit", hit), ("a hit with a browser's head that it has not seen before", busy)):
        if found and "nginx" in found.parts:
            text.append(f"{words} costs Seawall {found.value('seawall'):.1f} µs of processor time, nginx {found.value('nginx'):.1f} µs ({found.parts['nginx'][1]:.2f}×)")
    if text:
        lines.append(f"- {text[0][0].upper()}{'; '.join(text)[1:]}.")
    if hit and "floor" in hit.parts:
        lines.append(f"- The floor, a server that parses nothing and writes one prebuilt answer, needs {hit.value('floor'):.1f} µs: that is the kernel's work, and nobody can be below it.")
    crowd = figures(CROWD, numbers)
    if crowd and "nginx" in crowd.parts:
        mine = numbers["crowd"]
        lines.append(f"- {mine.section['clients']:,} readers at once on a page that is not stored, origin needs {mine.section['delay_ms'] / 1000:g} s: Seawall asks the origin "
                     f"{times(mine.value('stored', 'seawall', 'asked'))} and the last reader waits {crowd.value('seawall'):,.0f} ms longer than the first; nginx with its lock "
                     f"{times(mine.value('stored', 'nginx-ghost', 'asked'))} and {crowd.value('nginx'):,.0f} ms.")
    return "\n".join(lines)


def times(count):
    return "once" if count == 1 else f"{count:,.0f} times"


# ---- charts

ORDER = ("seawall", "nginx-new", "nginx", "h2o", "haproxy", "varnish", "floor")


def names(sections):
    versions = next(iter(sections.values()))["versions"]
    return {"seawall": "Seawall", "nginx-new": f"nginx {versions.get('nginx, newest', '')}", "nginx": f"nginx {versions.get('nginx', '')}", "h2o": f"h2o {versions.get('h2o', '')}",
            "haproxy": f"HAProxy {versions.get('HAProxy', '').split('-')[0]}", "varnish": f"Varnish {versions.get('Varnish', '')}", "floor": "the floor"}


def lines(row, numbers, called, words):
    """The bars of a row: [(server's part, name, value, words)], always in the same order."""
    mine = numbers[row.section]
    servers = {"seawall": row.seawall, "nginx": row.nginx, "nginx-new": f"{row.nginx}-new", "floor": row.floor, **{name: name for name in row.others}}
    found = []
    for part in ORDER:
        value = mine.value(row.row, servers[part], row.key) if servers.get(part) else None
        if value is not None:
            found.append((part, called[part], value, words(value, mine.ratio(row.row, servers[part], row.seawall, row.key), servers[part])))
    return found


def charts(sections, numbers):
    """{file name: (SVG, what it shows in words)}"""
    called = names(sections)
    facts = next(iter(sections.values()))["facts"]
    foot = f"Commit {facts['commit']}, {facts['date']}; {facts['machine'].split(', Linux')[0]}; one core and one worker each. BENCHMARKING.md has the rest."
    def cost(value, ratio, server):
        return f"{value:.1f} µs" + (f"  ({ratio:.2f}×)" if server != "seawall" and ratio is not None else "")
    made = {}
    def add(name, title, subtitle, groups):
        made[f"{name}.svg"] = (chart.bars(title, subtitle, groups, foot),
                               f"{title}. " + " ".join(f"{heading}: " + ", ".join(f"{name} {words}" for _, name, _, words in bars) + "." for heading, bars in groups))
    lower = "CPU time per request, µs; lower is better. In parentheses: how many times Seawall's."
    add("hit", "What a cached page costs the server", lower,
        [(heading, lines(ROWS[at], numbers, called, cost)) for heading, at in (("64 connections, 1,000 pages of 8 KB", 0), ("The same pages with browsers' heads, never the same twice", 2))])
    add("tls", "What a cached page costs over TLS", lower,
        [(heading, lines(ROWS[at], numbers, called, cost)) for heading, at in (("HTTP/1.1, 64 connections", 4), ("HTTP/2, 32 connections of 10 streams", 5))])
    crowd = numbers["crowd"]
    def lag(value, _, server):
        return f"{value:,.0f} ms; origin asked {times(crowd.value('stored', server, 'asked'))}"
    add("crowd", f"{crowd.section['clients']:,} readers at once on one page that is not stored",
        f"How much longer the last reader waits than the first, ms; lower is better. The origin needs {crowd.section['delay_ms'] / 1000:g} s.",
        [("All of them get the page", lines(CROWD_OF_ALL, numbers, called, lag))])
    return made


def written(old, sections, warnings):
    """(BENCHMARKING.md, {chart: SVG})"""
    numbers = {name: Numbers(section) for name, section in sections.items()}
    drawn = charts(sections, numbers)
    warned = "".join(f"> {warning}\n\n" for warning in warnings)
    pictures = "\n\n".join(f"![{words}](bench/results/{name})" for name, (_, words) in drawn.items())
    for mark, text in (("lead", warned + lead(sections, numbers)), ("summary", summary(sections, numbers)), ("charts", pictures),
                       ("better", where_another_is_better(numbers)), ("load", loads(numbers)), ("sections", list_of(sections))):
        old = report.replaced(old, mark, text + "\n")
    return old, {name: svg for name, (svg, _) in drawn.items()}


def list_of(sections):
    """Where every row's raw numbers are, and with which command they were measured."""
    return "\n".join(f"- [{section['title']}](bench/results/{name}.md) ([every number](bench/results/{name}.json)): `{section['facts']['command']}`"
                     for name, section in sections.items())
