"""doc/proof.md from the numbers in bench/results/seeds.json: what was published, and what `make seeds` found on one machine. Nothing here measures."""

import json
import shutil
import sys

import chart
import report

# A report or a picture beyond this is not worth its place in the repository.
REPORT_MAX, PICTURE_MAX = 300_000, 60_000

# What the posts say (before, after), how they measured, and what that makes of their numbers; then how it was done here, and what differs.
STORIES = {
    "ghost-ab": ("Ghost on a small server", "53 answers a second; 3,677 of 5,000 were errors; median 10 s", "2,617 answers a second behind nginx with `proxy_cache`; no errors; median 177 ms, 99 % 234 ms",
                 "`ab -c 500 -n 5000`, plain HTTP, one CPU. ab opens a new connection for each request, so `seawall bench` does so too (`--no-keepalive`).",
                 "Ghost and the server in front of it share one core, the load has the other. Ghost is 6.x with SQLite; the post's was older. The network is the loopback interface."),
    "ghost-wrk": ("Ghost over HTTPS", "37 answers a second; 311 timeouts", "13,866 answers a second behind nginx with lock and background update; mean 41 ms, longest 1.05 s",
                  "`wrk -c 500 -t 4`, HTTPS, two CPUs. wrk takes answers after more than two seconds for timeouts and leaves them out of its latencies; here they stay in, up to 30 s.",
                  "Ghost, the server in front of it and the load share two cores. As Ghost has no TLS, *before* is the same nginx without its cache."),
    "wordpress": ("WordPress behind php-fpm", "1,000 clients a second with a page cache plugin", "3,000 with a micro-cache in nginx; 7,500 when PHP is not started; 10,000 on a small page; 1,000 to 1,100 over HTTPS",
                  "loader.io, clients per second for a minute: *arrivals*, each a new client with a connection of its own that asks once. The post says 1.6 MB a page; its own data rates (1 Gbit/s at "
                  "3,000 a second, 2 Gbit/s at 7,500) mean 33 to 42 KB a client.",
                  "WordPress, its database and the load share two cores. *Before* has no page cache at all, where the post's had a plugin. Pages are asked for with `Accept-Encoding: gzip`; the bytes that "
                  "each client got are in the table."),
    "static": ("A static site on a platform", "137 answers a second, 99 % 1,769 ms (by the post's own arithmetic, that run had 1,000 requests: 7.284 s × 137.28/s)",
               "187 answers a second, 99 % 696 ms; 188 and 704 ms with a redirect to https",
               "`ab -c 100 -n 5000`, a connection for each request, 6.9 KB a page. 424 ms of each request are network: 300 to connect, 100 for the reply.",
               "A proxy delays each new connection by 300 ms and each reply by 100 ms. With 100 clients, no server can answer more than 250 requests a second over that distance: this is the limit that "
               "the after columns reach. The proxy accepts connections itself, so that the 300 ms show in the wait for the answer. *Before* is Python's `http.server`, as the post's buildpack is not there any more."),
    "blog": ("A blog of Markdown files", "1,380 answers a second over HTTP, 730 over HTTPS, with an engine that has the posts in memory and no cache",
             "HTTP: 3,100 to 3,300 for the index, 4,000 to 4,400 for a post; HTTPS: 2,200 to 2,500, and 2,500 to 3,000; it breaks near 3,000 clients",
             "Clients rise from 0 to 5,000 (HTTPS: 4,000) in a minute, and each asks again as soon as it was answered; eight small cores.",
             "The load shares two cores with the server. The post's engine does not exist any more, so that there is no *before*; the recipe is nginx with the same pages as files."),
}
COLUMNS = {"before": "before", "nginx": "nginx, the recipe", "after": "Seawall"}
INTRODUCTION = """# Before and after

Bloggers have published what their sites reached before and after they put nginx with a cache in front of them. This page repeats these measurements with `seawall bench`, on one machine: the
origin alone, behind the published nginx recipe, and behind Seawall. `make seeds` does it again on yours.

How to read it:

- All of a row's programs share one machine with the load generator. So compare the columns with each other, not with the published figures, which come from other machines.
- *at least* means that the load generator or the machine was the limit: the server could do more.
- Latencies of arrivals count from the moment at which a client was due. Timeouts stay in, with the time that the client waited.
"""


def load(folder):
    path = folder / "seeds.json"
    if not path.exists():
        sys.exit(f"{path} is missing: `make seeds` measures")
    return json.loads(path.read_text())


def limit(one):
    return one["verdict"]["limit"].replace("_", " ") + (", at least" if one["verdict"]["at_least"] else "")


def errors(one):
    found = [f"{count:,} {name}" for name, count in one["errors"].items() if count]
    return ", ".join(found) or "none"


def table(runs):
    lines = []
    for one in runs:
        per_client = one["bytes"] / one["answered"] / 1000 if one["answered"] else 0
        lines.append([one["title"], ("at least " if one["verdict"]["at_least"] else "") + report.number(one["good"] / one["duration"] if one["duration"] else 0), f"{one['good']:,} of {one['requests']:,}",
                      *(report.number(one["latency"][name], 1) for name in ("p50", "p99", "max")), errors(one), report.number(one["asked"]), report.number(per_client, 1), limit(one)])
    return report.table(["", "good answers/s", "good", "median ms", "99 % ms", "longest ms", "errors", "reached the origin", "KB an answer", "limit"], lines)


def picture(title, runs, foot):
    """Good answers a second, as bars."""
    lines = [({"after": "seawall", "nginx": "nginx", "before": "floor"}[one["column"]], one["title"],
              one["good"] / one["duration"] if one["duration"] else 0, f"{one['good'] / max(one['duration'], 1e-9):,.0f}/s, 99 % {one['latency']['p99']:,.0f} ms") for one in runs]
    return chart.bars(title, "Good answers a second; higher is better.", [("", lines)], foot)


def pictures_of(folder, run):
    """The charts of a run that are small enough: those of latency first."""
    if not run.get("pictures"):
        return []
    there = sorted((folder / "seeds" / run["seed"] / run["pictures"]).glob("*.svg"), key=lambda path: ("latency" not in path.name, path.name))
    return [path for path in there if path.stat().st_size <= PICTURE_MAX]


def write(folder, target):
    """Writes `target`/proof.md, and its pictures and reports into `target`/proof."""
    section = load(folder)
    place = target / "proof"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    facts = section["facts"]
    foot = f"{facts['machine'].split(', Linux')[0]}; commit {facts['commit']}, {facts['date']}. The load generator shares the machine."
    text = [INTRODUCTION]
    if section["trial"]:
        text.append("> **This is a trial and says nothing about speed**: " + "; ".join(section["trial"]) + ".\n")
    text.append(f"Machine: {facts['machine']}. Commit {facts['commit']}, {facts['date']}. {facts['versions']}.\n")
    for seed, (title, before, after, manner, differs) in STORIES.items():
        runs = [one for one in section["runs"] if one["seed"] == seed]
        text.append(f"## {title}\n")
        text.append(f"Published: **before** {before}; **after** {after}.\n\nHow: {manner}\n")
        if not runs:
            text.append("Not measured here yet: `make seeds`.\n")
            continue
        (place / f"{seed}.svg").write_text(picture(title, runs, foot))
        words = "; ".join(f"{one['title']}: {one['good'] / max(one['duration'], 1e-9):,.0f} good answers a second" for one in runs)
        text.append(f"![{title}. {words}.](proof/{seed}.svg)\n\n{table(runs)}\n\n{differs}\n")
        links = []
        for one in runs:
            path = folder / "seeds" / seed / (one["report"] or "-")
            if one["column"] in ("before", "after") and path.is_file() and path.stat().st_size <= REPORT_MAX:
                shutil.copy(path, place / path.name)
                links.append(f"[{one['title']}](proof/{path.name})")
        if links:
            text.append("Reports: " + ", ".join(links) + ".\n")
        shown = next((one for one in reversed(runs) if one["column"] == "after" and one.get("pictures")), None)
        for path in pictures_of(folder, shown)[:1] if shown else []:
            name = f"{seed}-{path.name}"
            shutil.copy(path, place / name)
            text.append(f"![{shown['title']}: {path.stem} over time](proof/{name})\n")
        text.append("Commands:\n\n" + "\n".join(f"    {command}" for command in dict.fromkeys(one["command"] for one in runs)) + "\n")
    (target / "proof.md").write_text("\n".join(text))
    return target / "proof.md"
