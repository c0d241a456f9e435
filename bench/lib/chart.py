"""Horizontal bars as SVG text: no library, no font to fetch. The background is drawn too, so that a chart can be read on a light page and on a dark one."""

import html
import math
import textwrap

WIDTH, PADDING, NAMES, VALUES = 820, 24, 170, 190
BAR, STEP, GROUP_GAP = 18, 26, 40
# As wide as small letters come in any of the fonts: a line that is broken by it fits.
FOOT_LETTER, FOOT_LINE = 7.4, 17
# As wide as a letter of a name is among others.
NAME_LETTER = 7.3
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif"
# The same colour for the same server on every chart; the others share one, as the names stand beside the bars.
COLOURS = {"seawall": "#2583a8", "nginx": "#5a9e4b", "nginx-new": "#3b7a2e", "floor": "#b3b8bf"}
OTHER = "#8d7fb8"
STYLE = f"""
  text {{ font-family: {FONT}; fill: #1f2328; }}
  .paper {{ fill: #ffffff; stroke: #d0d7de; }}
  .title {{ font-size: 17px; font-weight: 600; }}
  .sub, .foot {{ font-size: 12.5px; fill: #59636e; }}
  .group {{ font-size: 14px; font-weight: 600; }}
  .name {{ font-size: 13px; text-anchor: end; }}
  .value {{ font-size: 13px; }}
  .ours {{ font-weight: 700; }}
  @media (prefers-color-scheme: dark) {{
    text {{ fill: #e6edf3; }}
    .paper {{ fill: #0d1117; stroke: #30363d; }}
    .sub, .foot {{ fill: #9198a1; }}
  }}
"""


def colour(server):
    return COLOURS.get(server, OTHER)


def bars(title, subtitle, groups, foot=""):
    """`groups`: [(heading, [(server, its name, value, the value in words)])]. Every group has the same scale."""
    longest = max((value for _, lines in groups for *_, value, _ in lines), default=1) or 1
    names = max([NAMES, *(math.ceil(len(name) * NAME_LETTER) + 10 for _, lines in groups for _, name, *_ in lines)])
    room = WIDTH - 2 * PADDING - names - VALUES
    out, y = [], PADDING + 16
    out.append(text("title", PADDING, y, title))
    y += 22
    out.append(text("sub", PADDING, y, subtitle))
    for heading, lines in groups:
        y += GROUP_GAP
        out.append(text("group", PADDING, y, heading))
        y += 12
        for server, name, value, words in lines:
            ours = " ours" if server == "seawall" else ""
            wide = max(2, value / longest * room)
            out.append(text(f"name{ours}", PADDING + names - 10, y + BAR - 4, name))
            out.append(f'  <rect x="{PADDING + names}" y="{y}" width="{wide:.1f}" height="{BAR}" rx="2" fill="{colour(server)}"/>')
            out.append(text(f"value{ours}", PADDING + names + wide + 8, y + BAR - 4, words))
            y += STEP
    y += 12
    for line in textwrap.wrap(foot, int((WIDTH - 2 * PADDING) / FOOT_LETTER)):
        y += FOOT_LINE
        out.append(text("foot", PADDING, y, line))
    height = round(y + PADDING - 6)
    begin = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{html.escape(title)}">'
    paper = f'  <rect class="paper" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>'
    return "\n".join([begin, f"  <style>{STYLE}  </style>", paper, *out, "</svg>"]) + "\n"


def text(kind, x, y, words):
    return f'  <text class="{kind}" x="{x:.1f}" y="{y:.1f}">{html.escape(words)}</text>'
