"""What bench/proof promises: numbers are made up here, nothing is measured."""

import json
import pathlib
import tempfile
import unittest

import loaders
import proof

WRK = """Running 3s test @ http://127.0.0.1:1/
  1 threads and 10 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    12.34ms   50.00ms   1.98s    99.00%
    Req/Sec     3.00k   100.00      4.00k    70.00%
  Latency Distribution
     50%  450.00us
     75%    1.20ms
     90%    2.00ms
     99%    1.50s 
  9000 requests in 3.00s, 72.00MB read
  Socket errors: connect 0, read 1, write 2, timeout 3
  Non-2xx or 3xx responses: 4
Requests/sec:   3000.00
Transfer/sec:     24.00MB
"""
AB = """Complete requests:      5000
Failed requests:        7
Non-2xx responses:      3
Requests per second:    53.10 [#/sec] (mean)
Percentage of the requests served within a certain time (ms)
  50%    177
  66%    180
  99%    234
 100%    300 (longest request)
"""
H2LOAD = """finished in 3.00s, 1000.00 req/s, 8.00MB/s
requests: 3000 total, 3000 started, 3000 done, 2990 succeeded, 10 failed, 10 errored, 0 timeout
                     min         max         mean         sd        +/- sd
time for request:      100us      20.00ms      1.50ms       1.00ms    90.00%
"""


def run(seed, column, **values):
    return {"seed": seed, "column": column, "title": f"{column} of it", "note": "", "command": "seawall bench -c 500 http://127.0.0.1/", "asked": 3, "report": None, "pictures": None,
            "duration": 10.0, "requests": 5000, "answered": 4900, "good": 4800, "rate": 490.0, "bytes": 49_000_000, "errors": {"timeout": 100, "reset": 0}, "statuses": {"200": 4800, "503": 100},
            "latency": {"p50": 12.3, "p99": 99.9, "max": 1000.0}, "missed": 0, "clients": 500, "verdict": {"limit": "server", "at_least": False, "reason": ""}, **values}


class WhatGeneratorsPrint(unittest.TestCase):
    def test_wrk_counts_what_failed_and_what_was_no_success(self):
        self.assertEqual(loaders.wrk_said(WRK)[:4], (9000, 10, 3000.0, {"p50": 0.45, "p75": 1.2, "p90": 2.0, "p99": 1500.0, "max": 1980.0}))

    def test_ab(self):
        self.assertEqual(loaders.ab_said(AB)[:4], (5000, 10, 53.1, {"p50": 177.0, "p99": 234.0, "max": 300.0}))

    def test_h2load_prints_no_percentiles(self):
        self.assertEqual(loaders.h2load_said(H2LOAD)[:4], (3000, 10, 1000.0, {"mean": 1.5, "max": 20.0}))


class ThePage(unittest.TestCase):
    def written(self, runs, trial=()):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            facts = {"machine": "2 cores, A Processor, Linux 6.1", "commit": "abc1234", "date": "2026-01-02", "versions": "nginx 1.22.1"}
            (folder / "seeds.json").write_text(json.dumps({"runs": runs, "facts": facts, "trial": list(trial)}))
            page = proof.write(folder, folder / "doc").read_text()
            return page, sorted(path.name for path in (folder / "doc/proof").iterdir())

    def test_the_three_columns_of_a_seed_stand_in_one_table_with_its_picture(self):
        page, files = self.written([run("ghost-ab", column) for column in ("before", "nginx", "after")])
        self.assertEqual(files, ["ghost-ab.svg"])
        self.assertIn("| before of it | 480 | 4,800 of 5,000 | 12.3 | 99.9 | 1,000.0 | 100 timeout | 3 | 10.0 | server |", page)
        self.assertIn("2,617", page)

    def test_a_figure_that_the_generator_limited_reads_at_least(self):
        page, _ = self.written([run("blog", "after", verdict={"limit": "generator", "at_least": True, "reason": ""})])
        self.assertIn("| at least 480 |", page)

    def test_a_seed_that_was_not_measured_says_so(self):
        self.assertEqual(self.written([])[0].count("Not measured here yet"), len(proof.STORIES))

    def test_a_trial_says_so_on_the_page(self):
        self.assertIn("This is a trial", self.written([], ["a debug build was measured"])[0])


if __name__ == "__main__":
    unittest.main()
