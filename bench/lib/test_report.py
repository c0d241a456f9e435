"""What bench/report promises: python3 -m unittest discover -s bench/lib. Sections are made up here; nothing is measured."""

import re
import unittest
import xml.etree.ElementTree

import chart
import machine
import page
import results

FACTS = {"machine": "2 cores, A Processor, Linux 6.1", "commit": "abc1234", "program": "0123456789ab", "date": "2026-01-02", "command": "bench/x", "idle before the start": "99 %"}
VERSIONS = {"nginx": "1.22.1", "nginx, newest": "1.31.4", "h2o": "2.2.5", "HAProxy": "2.6.12-1", "Varnish": "7.1.1"}
MARKS = ("lead", "summary", "charts", "better", "load", "sections")
DOCUMENT = "# Benchmarks\n\nProse stays.\n" + "".join(f"\n<!-- begin {mark} -->\nold {mark}\n<!-- end {mark} -->\n" for mark in MARKS)


def section(name, **values):
    """`values`: {server: cost, or the costs of its rounds}, the same in every row of the summary that is found in this section."""
    rows = {row.row for row in [*page.ROWS, page.CROWD] if row.section == name}
    cells = []
    for row in sorted(rows):
        for server, costs in values.items():
            for at, cost in enumerate(costs if isinstance(costs, list) else [costs], 1):
                cells.append({"row": row, "server": server.replace("_", "-"), "round": at, "cpu_us": cost, "lag_last_ms": cost, "asked": 1, "faults": []})
    return {"section": name, "title": name.title(), "trial": [], "facts": dict(FACTS), "versions": dict(VERSIONS), "clients": 1000, "delay_ms": 1750,
            "servers": {server.replace("_", "-"): server for server in values}, "cells": cells}


def all_sections():
    return {
        "servers": section("servers", seawall=8.0, nginx_cache=14.0, nginx_cache_new=12.0, h2o=13.0, haproxy=11.0, varnish=17.0, floor=6.0),
        "static": section("static", seawall=8.0, nginx=10.0, nginx_new=9.0, h2o=12.0, floor=6.0),
        "tls": section("tls", seawall=20.0, nginx_cache=40.0, nginx_cache_new=38.0, h2o=30.0),
        "crowd": section("crowd", seawall=20.0, nginx_ghost=300.0, nginx_ghost_new=280.0, varnish=50.0, haproxy=30.0),
    }


def row_of(text, title):
    return [cell.strip() for cell in next(line for line in text.splitlines() if line.startswith(f"| {title}")).strip("|").split("|")]


def summary(sections):
    return page.summary(sections, {name: page.Numbers(one) for name, one in sections.items()})


class WhatIsPublished(unittest.TestCase):
    def test_sections_of_one_commit_are_published_without_a_warning(self):
        self.assertEqual(page.check(all_sections()), [])

    def test_a_trial_is_refused_and_says_why(self):
        sections = all_sections()
        sections["tls"]["trial"] = ["other programs were running (the machine was 41 % idle before the start)"]
        with self.assertRaisesRegex(page.Unfit, "tls: other programs were running"):
            page.check(sections)
        with self.assertRaises(page.Unfit):
            page.check(sections, mixed=True)

    def test_sections_of_different_commits_programs_or_machines_are_refused(self):
        for fact in ("commit", "program", "machine"):
            sections = all_sections()
            sections["static"]["facts"][fact] = "another"
            with self.assertRaisesRegex(page.Unfit, "different commits"):
                page.check(sections)

    def test_mixed_sections_carry_their_warning_onto_the_page(self):
        sections = all_sections()
        sections["static"]["facts"]["commit"] = "fed9876"
        text, _ = page.written(DOCUMENT, sections, page.check(sections, mixed=True))
        self.assertIn("> **Sections of different commits", text)
        self.assertIn("static fed9876", text)

    def test_an_optional_section_of_another_commit_is_left_out(self):
        sections = all_sections() | {"http3": section("http3", seawall=40.0, nginx_new=50.0, caddy=200.0)}
        self.assertIn("http3", page.without_strangers(sections))
        sections["http3"]["facts"]["commit"] = "fed9876"
        self.assertEqual(set(page.without_strangers(sections)), set(page.NEEDED))

    def test_a_needed_section_of_another_commit_is_not_left_out(self):
        sections = all_sections()
        sections["tls"]["facts"]["commit"] = "fed9876"
        self.assertEqual(page.without_strangers(sections), sections)

    def test_a_section_that_is_missing_is_refused_by_its_name(self):
        sections = all_sections()
        del sections["crowd"]
        with self.assertRaisesRegex(page.Unfit, "not measured yet: crowd"):
            page.check(sections)

    def test_a_measurement_that_is_a_trial_does_not_go_where_published_ones_are(self):
        measurement = results.Measurement.__new__(results.Measurement)
        measurement.given = type("Given", (), {"out": None})
        for trial, folder in (([], results.FOLDER), (["a debug build was measured"], results.TRIALS)):
            measurement.trial = trial
            self.assertEqual(measurement.folder(), folder)


class TheSummary(unittest.TestCase):
    def test_a_row_has_costs_and_their_ratio_to_seawall_and_the_least_is_bold(self):
        self.assertEqual(row_of(summary(all_sections()), "Hit, 64"),
                         ["Hit, 64 connections", "**8.0**", "14.0 (1.75×)", "12.0 (1.50×)", "HAProxy 11.0 (1.38×)", "6.0 (0.75×)"])

    def test_the_floor_is_never_the_best(self):
        self.assertNotIn("**6.0**", summary(all_sections()))

    def test_figures_are_medians_and_ratios_are_medians_of_the_ratios_within_a_round(self):
        sections = all_sections()
        # Twice as slow a machine in the second round, for both; by the medians alone the ratio would be 1.6.
        sections["servers"] = section("servers", seawall=[10.0, 20.0, 10.0], nginx_cache=[16.0, 40.0, 20.0])
        self.assertEqual(row_of(summary(sections), "Hit, 64")[1:3], ["**10.0**", "20.0 (2.00×)"])

    def test_a_round_that_is_not_valid_is_left_out(self):
        sections = all_sections()
        sections["servers"] = section("servers", seawall=[8.0, 8.0], nginx_cache=[16.0, 900.0])
        for cell in sections["servers"]["cells"]:
            if cell["cpu_us"] == 900.0:
                cell["faults"] = ["wrk counted 3 timeout errors"]
        self.assertEqual(row_of(summary(sections), "Hit, 64")[2], "16.0 (2.00×)")

    def test_a_server_without_a_valid_round_is_called_not_valid(self):
        sections = all_sections()
        for cell in sections["servers"]["cells"]:
            if cell["server"] == "nginx-cache":
                cell["faults"] = ["the origin was asked 7 times during hits"]
        self.assertEqual(row_of(summary(sections), "Hit, 64")[2], "not valid")

    def test_what_was_not_measured_says_so(self):
        sections = all_sections()
        for one in sections.values():
            one["cells"] = [cell for cell in one["cells"] if not cell["server"].endswith("-new")]
            one["servers"] = {name: title for name, title in one["servers"].items() if not name.endswith("-new")}
            del one["versions"]["nginx, newest"]
        self.assertEqual(row_of(summary(sections), "Hit, 64")[3], "not measured")
        self.assertEqual(row_of(summary(sections), "Hit over HTTP/3")[1], "not measured")
        self.assertIn("nginx, newest", summary(sections).splitlines()[0])

    def test_an_unlocked_cache_is_not_the_best_of_a_crowd(self):
        self.assertEqual(row_of(summary(all_sections()), "1,000 readers")[4], "Varnish 50 (2.50×)")

    def test_whoever_needs_less_than_seawall_is_named(self):
        sections = all_sections()
        sections["static"] = section("static", seawall=8.0, nginx=4.0, h2o=7.9, floor=6.0)
        text = page.where_another_is_better({name: page.Numbers(one) for name, one in sections.items()})
        self.assertIn("- Range of 64 KB: nginx 0.50×", text)
        self.assertNotIn("h2o", text)  # within five per cent
        self.assertNotIn("floor", text)

    def test_where_nobody_is_better_that_is_said(self):
        self.assertIn("In none of these rows", page.where_another_is_better({name: page.Numbers(one) for name, one in all_sections().items()}))


class ThePage(unittest.TestCase):
    def test_only_what_stands_between_the_marks_is_replaced(self):
        text, _ = page.written(DOCUMENT, all_sections(), [])
        self.assertIn("# Benchmarks\n\nProse stays.\n", text)
        self.assertNotRegex(text, "old (lead|summary|charts|better|sections)")
        self.assertEqual(page.written(text, all_sections(), [])[0], text)

    def test_the_published_page_has_every_mark(self):
        text = (machine.ROOT / "BENCHMARKING.md").read_text()
        for mark in MARKS:
            self.assertEqual(text.count(f"<!-- begin {mark} -->"), 1)
            self.assertEqual(text.count(f"<!-- end {mark} -->"), 1)

    def test_the_published_page_links_only_to_what_is_there(self):
        text = (machine.ROOT / "BENCHMARKING.md").read_text()
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            self.assertTrue((machine.ROOT / target).exists(), target)

    def test_what_is_published_is_no_trial_and_of_one_commit(self):
        published = page.without_strangers(page.load(results.FOLDER))
        if set(page.NEEDED) <= set(published):
            text = (machine.ROOT / "BENCHMARKING.md").read_text()
            for warning in page.check(published, mixed=True):
                self.assertIn(warning, text)

    def test_the_commit_the_day_and_the_machine_are_named_once(self):
        text, _ = page.written(DOCUMENT, all_sections(), [])
        self.assertIn("2 cores, A Processor, Linux 6.1; at least 99 % idle before each section. Commit **abc1234**, 2026-01-02.", text)


class TheCharts(unittest.TestCase):
    def drawn(self):
        return page.written(DOCUMENT, all_sections(), [])[1]

    def test_there_are_three_and_each_is_well_formed(self):
        self.assertEqual(sorted(self.drawn()), ["crowd.svg", "hit.svg", "tls.svg"])
        for svg in self.drawn().values():
            xml.etree.ElementTree.fromstring(svg)

    def test_bars_are_as_long_as_their_values(self):
        svg = chart.bars("Title", "unit", [("Group", [("seawall", "Seawall", 5.0, "5"), ("nginx", "nginx", 10.0, "10")])])
        short, long = (float(width) for width in re.findall(r'<rect x="\d+" y="\d+" width="([\d.]+)"', svg))
        self.assertAlmostEqual(long / short, 2.0, places=2)

    def test_no_text_and_no_bar_leaves_the_paper(self):
        sections = all_sections()
        for one in sections.values():
            one["facts"]["commit"] = "abc1234 with local changes"
            one["facts"]["machine"] = "128 cores, A Processor With A Rather Long Name (R) @ 2.90 GHz, a virtual machine, Linux 6.1"
        for svg in page.written(DOCUMENT, sections, [])[1].values():
            for x, size, words in ((float(x), 17 if kind == "title" else 13, words) for kind, x, words in re.findall(r'<text class="([a-z ]+)" x="([\d.]+)"[^>]*>([^<]*)', svg) if "name" not in kind):
                self.assertLess(x + len(words) * size * 0.57, chart.WIDTH, words)

    def test_the_same_server_has_the_same_colour_and_place_everywhere(self):
        for svg in self.drawn().values():
            named = re.findall(r'class="name[^"]*"[^>]*>([^<]*)', svg)
            self.assertEqual(named[:3], ["Seawall", "nginx 1.31.4", "nginx 1.22.1"])
            self.assertEqual(re.findall(r'fill="(#\w+)"', svg)[:3], [chart.COLOURS[name] for name in ("seawall", "nginx-new", "nginx")])

    def test_what_is_written_is_escaped(self):
        svg = chart.bars("a < b & c", "unit", [("Group", [("seawall", "<Seawall>", 1.0, "1")])])
        self.assertIn("a &lt; b &amp; c", svg)
        xml.etree.ElementTree.fromstring(svg)


class AQuietMachine(unittest.TestCase):
    def setUp(self):
        self.idleness, self.sleep, self.say = machine.idleness, machine.time.sleep, machine.say
        machine.time.sleep = machine.say = lambda _: None

    def tearDown(self):
        machine.idleness, machine.time.sleep, machine.say = self.idleness, self.sleep, self.say

    def test_a_quiet_one_is_not_waited_for(self):
        machine.idleness = lambda: (0.99, "nothing that can be named")
        self.assertEqual(machine.wait_until_quiet(False), 0.99)

    def test_it_is_waited_for_until_it_is_quiet(self):
        seen = iter([(0.2, "rustc 95 %"), (0.5, "rustc 90 %"), (0.97, "sshd 1 %")])
        machine.idleness = lambda: next(seen)
        self.assertEqual(machine.wait_until_quiet(False), 0.97)

    def test_one_that_stays_busy_is_refused_and_who_is_at_work_is_named(self):
        machine.idleness = lambda: (0.2, "rustc 95 %")
        with self.assertRaisesRegex(SystemExit, "rustc 95 %.*--even-if-busy"):
            machine.wait_until_quiet(False, wait_seconds=-1)

    def test_a_trial_goes_ahead_on_a_busy_one(self):
        machine.idleness = lambda: (0.2, "rustc 95 %")
        self.assertEqual(machine.wait_until_quiet(True), 0.2)



class TheLoadTester(unittest.TestCase):
    def test_generators_stand_beside_each_other_and_the_least_is_bold(self):
        one = section("load")
        one["cells"] = [{"row": "h1-64", "server": name, "round": 1, "cpu_us": cost, "faults": []} for name, cost in (("seawall", 4.0), ("wrk", 10.0), ("ab", 8.0))]
        sections = all_sections() | {"load": one}
        text, _ = page.written(DOCUMENT, sections, page.check(sections))
        self.assertIn("| HTTP/1.1, 64 connections | **4.0** | 10.0 (2.50×) | 8.0 (2.00×) | – |", text)

    def test_a_page_without_this_section_says_so(self):
        self.assertIn("make bench SECTIONS=load", page.written(DOCUMENT, all_sections(), [])[0])


if __name__ == "__main__":
    unittest.main()
