"""Tests what the benchmarks do with samples, without measuring: order, ratios, tables, chart, arguments."""
import io
import os
import re
import sys
import unittest
import xml.dom.minidom
from contextlib import redirect_stderr, redirect_stdout

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import bench  # noqa: E402
from suite import chart, contest, fair, laterd, longest, longest_calls, modes, procs, table  # noqa: E402

SPEED = modes.Metric("per_s", "jobs/s", "", True)


def contestant(name, kind, values, is_close=False, missing=None):
    """Its runs give these values, then fail."""
    left = list(values)

    def run():
        if not left:
            raise procs.Failed("no more")
        return {"per_s": left.pop(0)}

    return modes.Contestant(name, kind, run, missing, "", is_close)


def measured(contestants, rounds):
    mode = modes.Mode("drain", "a test", [SPEED], contestants)
    with redirect_stderr(io.StringIO()):
        return contest.summarize(mode, *contest.run(mode, rounds))


def report(mode):
    return {"version": "laterd 0", "redis": "7", "processors": 2, "rounds": 3, "load_before": 0.0,
            "load_after": 0.0, "modes": {"drain": mode}}


class Looks(unittest.TestCase):
    def test_more_often_towards_the_end(self):
        self.assertEqual(laterd.pause_s(0, 1, 100), laterd.LOOK_S)
        self.assertEqual(laterd.pause_s(1000, 0.1, 1000), 0.05)
        self.assertEqual(laterd.pause_s(1000, 0.1, 10), laterd.LOOK_LEAST_S)
        self.assertEqual(laterd.pause_s(1, 1, 1000000), laterd.LOOK_MOST_S)


class Contest(unittest.TestCase):
    def test_rivals_and_laterd_take_turns(self):
        who = [contestant("a", "laterd", []), contestant("b", "laterd", []), contestant("x", "peer", [], True),
               contestant("y", "peer", []), contestant("z", "peer", [])]
        self.assertEqual("".join(c.name for c in contest.order(who)), "xabyaza")
        self.assertEqual("".join(c.name for c in contest.order(who[:2])), "ab")

    def test_ratio_is_of_runs_beside_each_other(self):
        # The machine is twice as fast in the second round, but the ratio of each round is 4.
        mode = measured([contestant("a", "laterd", [40, 80]), contestant("x", "peer", [10, 20])], 2)
        rival = mode["rows"][1]
        self.assertEqual(rival["laterd_ratio"], {"a": {"per_s": 4}})
        self.assertEqual(rival["median"], {"per_s": 15})

    def test_what_is_missing_is_named(self):
        mode = measured([contestant("a", "laterd", [40]), contestant("x", "peer", [], missing="not installed: x"),
                         contestant("y", "peer", [])], 1)
        text = table.text(report(mode))
        self.assertIn("not installed: x: x", text)
        self.assertIn("failed: no more: y", text)
        self.assertTrue(bench.failed(report(mode)))

    def test_percentiles(self):
        late = modes.lateness([float(i) for i in range(100)] + [-1.0])
        self.assertEqual((late["p50_ms"], late["p99_ms"], late["max_ms"], late["early"]), (49.0, 98.0, 99.0, 1))


class Chart(unittest.TestCase):
    def test_it_is_xml_and_has_what_was_measured(self):
        mode = measured([contestant("a & b", "laterd", [40]), contestant("x", "peer", [10]),
                         contestant("gone", "peer", [], missing="not installed: gone")], 1)
        svg = chart.draw(report(mode))
        xml.dom.minidom.parseString(svg)
        self.assertIn("a &amp; b", svg)
        self.assertNotIn("gone", svg)


class Longest(unittest.TestCase):
    class Bench:
        def units(self):
            return 100.0, 50.0

        def functions(self):
            return ["later_a", "later_b"]

    def test_table(self):
        rows = [("later_a", "much", 250.0), ("later_a", "more", 1500.0), ("later_b", "none", None)]
        lines = longest.table(rows, self.Bench(), "7.0.15", 2, 10)
        self.assertEqual(lines[4:], ["| `later_b` | none | failed |  |  |", "| `later_a` | more | 1.5 | 15.0 | 30.0 |",
                                     "| 1 others | | | less than 10 | |"])

    def test_every_function_has_a_line(self):
        self.assertTrue(longest.is_complete([("later_a", "", 1.0), ("later_b", "", 1.0)], self.Bench(), []))
        with redirect_stderr(io.StringIO()) as said:
            self.assertFalse(longest.is_complete([("later_a", "", 1.0)], self.Bench(), []))
        self.assertIn("later_b has no line", said.getvalue())

    def test_cases(self):
        keys = [(c.function, c.what) for c in longest_calls.CASES]
        self.assertEqual(len(keys), len(set(keys)))
        there = set()
        for folder in ("public", "calls"):
            folder = os.path.join(procs.TOP, "src/lua", folder)
            for name in os.listdir(folder):
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    there.update(re.findall(r"^(?:register\(|.* = register\()'(later_\w+)'", f.read(), re.M))
        self.assertGreater(len(there), 80)
        self.assertEqual(there - {c.function for c in longest_calls.CASES}, set())


class Fair(unittest.TestCase):
    def test_quiet_jobs_are_due_evenly(self):
        dues = fair.quiet_dues(10, 1000, 20)
        self.assertEqual(len(dues), 2 * fair.QUIET)
        self.assertEqual((dues[0], dues[fair.QUIET]), ((1, 1000), (1, 11000)))
        self.assertEqual(sorted({tenant for tenant, _ in dues}), list(range(1, fair.QUIET + 1)))

    def test_waits(self):
        self.assertEqual(fair.waits([], 3), {"not_started": 3})
        self.assertEqual(fair.waits([1.0, 3.0], 3), {"p50_ms": 3.0, "p99_ms": 3.0, "max_ms": 3.0, "not_started": 1})

    def test_shares_are_of_the_run_time_within_a_span(self):
        rows = [(1, 0, 0, 150), (2, 0, 120, 220), (2, 0, 300, 400), (3, 0, 100, 200)]
        self.assertEqual(fair.shares(rows, (1, 2), 100, 200), [100 * 50 / 130, 100 * 80 / 130])
        self.assertEqual(fair.shares([], (1, 2), 100, 200), [0, 0])
        self.assertAlmostEqual(fair.shared([57.0, 21.5, 21.5], (3, 1, 1))["off_percent"], 7.5)
        self.assertAlmostEqual(fair.shared([57.0, 21.5, 21.5], (3, 1, 1), 1)["off_percent"], 5)

    def test_counting_starts_gives_long_jobs_more(self):
        self.assertAlmostEqual(fair.simulate([100, 1], 2000, True)[0], 99, delta=1)
        self.assertAlmostEqual(fair.simulate([100, 1], 20000, False)[0], 50, delta=1)

    def test_rounds_become_medians_and_ratios_of_a_round(self):
        lines = fair.Lines()
        with redirect_stderr(io.StringIO()):
            for alone, beside in ((2, 6), (4, 4), (1, 2)):
                first = lines.add("alone", {"p99_ms": alone})
                lines.add("beside", {"p99_ms": beside, "shares": [beside, 1]}, of_alone=first)
        lines.missing("x", "left out")
        rows = lines.rows()
        self.assertEqual([row["case"] for row in rows], ["alone", "beside", "x"])
        self.assertEqual((rows[1]["p99_ms"], rows[1]["of_alone"], rows[1]["shares"]), (4, 2, "4.0 1.0"))
        self.assertEqual(rows[2]["missing"], "left out")


class Arguments(unittest.TestCase):
    def status(self, *argv):
        with redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()):
            try:
                bench.parse(list(argv))
            except SystemExit as e:
                return e.code
        return None

    def test_wrong_ones_are_refused_with_64(self):
        for argv in (["dance"], ["--loud"], ["--rounds", "0"], ["--rounds", "x"], ["drain", "--from", "x"]):
            self.assertEqual(self.status(*argv), 64, argv)

    def test_right_ones(self):
        self.assertEqual(self.status("--help"), 0)
        self.assertIsNone(self.status("drain", "idle", "--rounds", "5", "--no-peers", "--json"))


if __name__ == "__main__":
    unittest.main()
