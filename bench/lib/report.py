"""Numbers to Markdown: the tables that are written to bench/results."""

import statistics
import sys

def replaced(text, name, section):
    """A document with the section between its marks replaced."""
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    if begin not in text or end not in text:
        sys.exit(f"the marks of the section {name} are missing in the document")
    return text[:text.index(begin) + len(begin)] + section + text[text.index(end):]


def table(head, rows):
    """A Markdown table; the first column is text, the others are numbers and stand to the right."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def facts_list(facts):
    return "\n".join(f"- {name}: {'`' + value + '`' if name == 'command' else value}" for name, value in facts)


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def number(value, digits=0):
    return "-" if value is None else f"{value:,.{digits}f}"


def spread(values, digits=0):
    """The median, and the least and the greatest where there were several rounds."""
    values = [value for value in values if value is not None]
    if not values:
        return "-"
    middle = number(statistics.median(values), digits)
    return middle if len(values) == 1 else f"{middle} ({number(min(values), digits)}–{number(max(values), digits)})"


def ratio(ours, theirs, digits=2):
    """The median of the ratios round by round: both were measured within the same seconds, so the machine's mood cancels out."""
    pairs = [a / b for a, b in zip(ours, theirs) if a is not None and b]
    return "-" if not pairs else number(statistics.median(pairs), digits)


def mebibytes(value):
    return number(value / 1048576, 1)


def cost(cell):
    """What a request costs the server: instructions where they are counted, else CPU time."""
    if cell.instructions_user is None or cell.instructions_kernel is None:
        return cell.cpu_us
    return cell.instructions_user + cell.instructions_kernel


WHAT = {
    "hit": "Hit: 1,000 different pages of 8 KB, all stored",
    "browsers": "Hit: the same pages, each request with a head that was not seen before, as 5,000 browsers send them",
    "304": "304: the same pages, asked with If-None-Match",
    "miss": "Miss: a path never asked before, fetched and stored",
    "pass": "Pass-through: `Cache-Control: no-store`, always from the origin",
}


def row_table(row, servers, cells, counter, baseline=("nginx-cache", "nginx proxy_cache"), heading=None):
    """One measured row: every server that takes part, the floor first, then by cost. `baseline`: the server whose requests/s are compared with."""
    taking_part = [server for server in servers if (row, server.name) in cells]
    rounds = {server.name: cells[row, server.name] for server in taking_part}
    floor = rounds.get("floor") or rounds.get("floor-304")
    nginx = rounds.get(baseline[0])
    lines = []
    for server in sorted(taking_part, key=lambda server: (not server.name.startswith("floor"), median([cost(cell) for cell in rounds[server.name]]))):
        mine = rounds[server.name]
        line = [server.title, spread([cell.requests_per_s for cell in mine]),
                ratio([cell.requests_per_s for cell in mine], [cell.requests_per_s for cell in nginx]) if nginx else "-",
                spread([cell.cpu_us for cell in mine], 1)]
        if counter:
            line += [spread([None if cell.instructions_user is None else cell.instructions_user + cell.instructions_kernel for cell in mine]),
                     number(median([cell.instructions_user for cell in mine]))]
        line += [ratio([cost(cell) for cell in mine], [cost(cell) for cell in floor]) if floor else "-",
                 spread([cell.p99_us / 1000 for cell in mine], 1), f"{median([cell.busy for cell in mine]) * 100:.0f} %",
                 sum(sum(cell.errors.values()) for cell in mine)]
        lines.append(line)
    head = ["server", "requests/s", f"÷ {baseline[1]}", "CPU µs/request"]
    head += ["instructions/request", "of them user"] if counter else []
    head += ["cost ÷ floor", "p99 ms", "server core busy", "errors"]
    text = f"#### {heading or WHAT[row.kind]}; {row.connections} connections\n\n{table(head, lines)}\n"
    others = [cell.others for mine in rounds.values() for cell in mine]
    if max(others) > 0.05:
        text += f"\nOther programs took up to {max(others) * 100:.0f} % of the server's core meanwhile (median {median(others) * 100:.0f} %): requests/s and p99 suffered from it.\n"
    for server in taking_part:
        for at, cell in enumerate(rounds[server.name], 1):
            text += "".join(f"\n- **not valid**: {server.title}, round {at}: {fault}" for fault in cell.faults)
    return text + "\n"


def counts_table(servers, kinds, counts, told=("hit", "304")):
    """Untimed: user-space instructions and system calls per request; for the kinds in `told` also which calls."""
    lines = []
    for server in servers:
        mine = [counts.get((server.name, kind)) for kind in kinds]
        if any(mine):
            lines.append([server.title] + [cell for pair in mine for cell in (
                (number(pair["instructions"]) if pair else "-"), (number(pair["syscalls"], 2) if pair else "-"))])
    names = {}
    for (name, kind), pair in counts.items():
        if pair and pair["calls"] and kind in told:
            common = sorted(pair["calls"].items(), key=lambda item: -item[1])
            names[name, kind] = ", ".join(f"{call} {each:.2f}" for call, each in common if each >= 0.01)
    titles = {server.name: server.title for server in servers}
    text = table(["server"] + [f"{kind}: {what}" for kind in kinds for what in ("user instructions", "system calls")], lines)
    text += "\n\n" + "\n".join(f"- {titles[name]}, {kind}: {calls}" for (name, kind), calls in names.items() if name in titles)
    return text + "\n"


def memory_table(servers, measured, idle):
    lines = []
    for server in servers:
        if server.name in measured:
            empty, full, fuller, connected = measured[server.name]
            lines.append([server.title] + [f"{mebibytes(pss)} ({mebibytes(rss)})" for rss, pss in (empty, full, fuller, connected)]
                         + [number(max(0, fuller[1] - full[1]) / 3000) if server.caches else "-", number(max(0, connected[1] - fuller[1]) / idle)])
    return table(["server", "empty", "1,000 stored pages", "3,000 more", f"and {idle:,} idle connections", "bytes a page", "bytes a connection"], lines) + "\n"
