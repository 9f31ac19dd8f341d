"""Texts that are durations and quantities to Kubernetes, with their values, and texts that are not."""

from __future__ import annotations

from fractions import Fraction

# Examples of Go's own test of time.ParseDuration, as far as they differ in kind.
DURATIONS = [
    ("0", 0.0),
    ("5s", 5.0),
    ("30s", 30.0),
    ("1478s", 1478.0),
    ("+5s", 5.0),
    ("-5s", -5.0),
    ("+0", 0.0),
    ("5.0s", 5.0),
    ("5.6s", 5.6),
    ("5.s", 5.0),
    (".5s", 0.5),
    ("1.004s", 1.004),
    ("100.00100s", 100.001),
    ("10ns", 1e-8),
    ("11us", 1.1e-5),
    ("12\u00b5s", 1.2e-5),
    ("12\u03bcs", 1.2e-5),
    ("13ms", 0.013),
    ("15m", 900.0),
    ("16h", 57600.0),
    ("3h30m", 12600.0),
    ("1h30m", 5400.0),
    ("10.5s4m", 250.5),
    ("-2m3.4s", -123.4),
    ("39h9m14.425s", 140954.425),
    ("0.3333333333333333333h", 1200.0),
    ("9007199254.740993ms", 9007199.254740993),
]
NO_DURATIONS = [
    "",
    "3",
    "-",
    "s",
    ".",
    "-.",
    ".s",
    "+.s",
    "1d",
    "2w",
    "60 seconds",
    "5x",
    "1h 30m",
    "1e3s",
    "٣s",
    "1s\n",
]

QUANTITIES = [
    ("0", Fraction(0)),
    ("100", Fraction(100)),
    (100, Fraction(100)),
    ("1.5", Fraction(3, 2)),
    (".5", Fraction(1, 2)),
    ("5.", Fraction(5)),
    ("+5", Fraction(5)),
    ("1e+0000000003", Fraction(1000)),
    ("0001e-0003", Fraction(1, 1000)),
    ("-5", Fraction(-5)),
    ("250m", Fraction(1, 4)),
    ("7u", Fraction(7, 10**6)),
    ("3n", Fraction(3, 10**9)),
    ("1k", Fraction(1000)),
    ("10M", Fraction(10**7)),
    ("10Gi", Fraction(10 * 2**30)),
    ("0.5Ki", Fraction(512)),
    ("1Mi", Fraction(2**20)),
    ("2T", Fraction(2 * 10**12)),
    ("2Ti", Fraction(2 * 2**40)),
    ("1P", Fraction(10**15)),
    ("1Pi", Fraction(2**50)),
    ("2E", Fraction(2 * 10**18)),
    ("1Ei", Fraction(2**60)),
    ("1e3", Fraction(1000)),
    ("1E3", Fraction(1000)),
    ("1.5e-3", Fraction(3, 2000)),
    ("1e+2", Fraction(100)),
]
NO_QUANTITIES = ["", "1K", "1ki", "40MB", "1 Gi", "Mi", "1.2.3", "0x10", "1e", "1e1.5", "--1", "1Gib", "1\n", "١", True]
# The API server never comes to an end with some of these.
NO_QUANTITIES += ["1e1000", "0e2147483648", "1e2147483648", "1e-2147483648"]
