"""Whatever bytes a file holds, loading it names what is wrong and where."""

import time

import pytest

from corebound.errors import ScenarioFaults
from corebound.scenario.loader import load
from support.faults import unlike

SOUND = """\
schema: 1
name: sound
title: A sound scenario
question: Is it sound?
workload: my_module:setup
"""


def faults(text: str | bytes) -> str:
    data = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(ScenarioFaults) as caught:
        load(data, "f.yaml")
    return str(caught.value)


CASES: dict[str, tuple[str | bytes, list[str]]] = {
    "an empty file": ("", ["1 | empty | `schema: 1`"]),
    "only a comment": ("# later\n", ["1 | empty | `schema: 1`"]),
    "a list at the root": ("\n- schema: 1\n", ["2 | not a scenario | `name: gemm` | indentation"]),
    "a word at the root": ("gemm", ["1 | not a scenario | `name: gemm` | indentation"]),
    "a tab": (SOUND + "matrix:\n\tthreads: [1]\n", ["7 | tab"]),
    "a second colon": (
        SOUND + "source: Threads: how many\n",
        ["6 | `:` | not allowed | indentation | `: `"],
    ),
    "an open quote": (SOUND + "source: 'never closed\nthreads: 2\n", ["6 | quote | not closed"]),
    "an open bracket": (
        SOUND + "matrix:\n  threads: [1, 2\nsmt: true\n",
        ["7 | `[` | not closed | `]`"],
    ),
    "an open brace": (SOUND + "baseline: {threads: 1\nsmt: true\n", ["6 | `{` | not closed | `}`"]),
    "a bracket too many": (
        SOUND + "matrix: {threads: [1, 2]}}\n",
        ["6 | `}` | closes nothing | `{`"],
    ),
    "an unknown escape": (SOUND + 'source: "C:\\qux"\n', ["6 | backslash | escape"]),
    "a value of YAML's own": (SOUND + "source: @me\n", ["6 | reserves | in quotes"]),
    "a glob": (SOUND + "source: *.txt\n", ["6 | `*` | `&` | anchor | in quotes"]),
    "ragged indentation": (
        SOUND + "measure:\n    iterations: 3\n  margin: 0.1\n",
        ["8 | indentation"],
    ),
    "a key without a colon": (
        SOUND + "matrix:\n  threads [1]\n  smt: [true]\n",
        ["8 | `:` | not allowed | indentation | `: `"],
    ),
    "two documents": (SOUND + "---\n" + SOUND, ["6 | second document"]),
    "a key twice": (SOUND + "threads: 1\nsmt: true\nthreads: 2\n", ["8 | `threads` | line 6"]),
    "keys that are not text": (
        SOUND + "1: a\nnull: b\ntrue: c\n? [a]\n: d\n",
        [
            "6 | `1` | is not text",
            "7 | `null` | is not text",
            "8 | `true` | is not text",
            "9 | is not text",
        ],
    ),
    "a merge key": (
        SOUND + "measure: &m {iterations: 3}\nprofiles:\n  quick:\n    <<: *m\n",
        ["9 | `<<` | merge"],
    ),
    "a tag": (
        SOUND + "threads: !!int '2'\nsource: !!python/name:os.system x\n",
        ["6 | tags | `!!int`", "7 | tags | `!!python/name:os.system`"],
    ),
    "an alias of nothing": (SOUND + "threads: *many\n", ["6 | `*many` | anchor | `&many`"]),
    "an alias of itself": (SOUND + "matrix: &m\n  threads: [*m]\n", ["7 | `*m` | within | `&m`"]),
    "numbers that are none": (
        SOUND + "measure:\n  margin: .nan\n  timeout_s: -.inf\n  iterations: 1e999\n",
        [
            "7 | `.nan` | not a finite",
            "8 | `-.inf` | not a finite",
            "9 | `1e999` | too large | in quotes",
        ],
    ),
    "a number beyond 64 bits": (
        SOUND + f"parameters: {{a: {2**63}, b: {'9' * 5000}}}\n",
        [
            "6 | `9223372036854775808` | too large | in quotes",
            "6 | `999999999999999999999999999999999999999…` | too large | in quotes",
        ],
    ),
    "a NUL by escape": (SOUND + 'env: {A: "a\\0b"}\n', ["6 | control character | U+0000"]),
    "half a character": (SOUND + 'source: "\\uD83D"\n', ["6 | `\\uD83D` | half a character"]),
    "an escape beyond Unicode": (SOUND + 'source: "\\UFFFFFFFF"\n', ["6 | escape | too large"]),
    "another encoding": (SOUND.encode() + "source: Übung\n".encode("latin-1"), ["6 | UTF-8"]),
    "UTF-16": (SOUND.encode("utf-16"), ["1 | UTF-8"]),
    "a NUL": (SOUND.encode() + b"\0", ["6 | U+0000 | not allowed"]),
    "a line break that editors do not show": (
        SOUND + "source: a\u2028b\n",
        ["6 | U+2028 | not allowed"],
    ),
    "deep nesting": (SOUND + "matrix: " + "[" * 5000, ["6 | nested | more than 16"]),
    "too large a file": ("#" * 300_000, ["1 | 300,000 | 262,144"]),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_a_syntax_error_is_reported_with_its_line(text: str | bytes, expected: list[str]) -> None:
    assert not unlike(faults(text), expected)


def test_faults_of_the_text_and_of_the_scenario_are_reported_together() -> None:
    text = SOUND + "threads: 1\nthreads: 2\nbindng: none\nmeasure: {margin: .nan, iterations: 0}\n"

    expected = ["7 | `threads` | line 6", "8 | `bindng`", "9 | `.nan`", "9 | `iterations: 0`"]
    assert not unlike(faults(text), expected)


def test_aliases_that_expand_exponentially_are_rejected_at_once() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    for one, next_one in zip("abcdefghi", "bcdefghij", strict=True):
        lines.append(f"{next_one}: &{next_one} [{', '.join([f'*{one}'] * 10)}]")

    assert not unlike(faults("\n".join(lines)), ["5 | 50,000 values | aliases"])


def test_an_anchor_and_its_alias_are_one_value() -> None:
    text = f"{SOUND}baseline: &plain {{binding: none}}\nmatrix: {{binding: [none, node]}}\n"
    text += "claims:\n- {says: x, faster: {binding: node}, than: *plain}\n"

    scenario = load(text.encode(), "f.yaml")

    assert scenario.claims[0].than == scenario.baseline


def test_a_fault_in_an_alias_is_reported_where_it_is_used() -> None:
    text = SOUND + "parameters: {a: &many 0}\nthreads: *many\n"

    assert not unlike(faults(text), ["7 | `threads: 0` | thread count"])


def test_scalars_are_those_of_yaml_1_2() -> None:
    words = ["yes", "off", "1:30", "2026-01-31", "1_000", "0,2", "null-ish"]
    others = {"010": 10, "0x1F": 31, "0o17": 15, "-3": -3, "True": True, "1e3": 1000.0, ".5": 0.5}
    expected = {word: word for word in words} | others | {"1.": 1.0, "'12'": "12"}
    written = "".join(f"  p{at}: {text}\n" for at, text in enumerate(expected))

    found = load(f"{SOUND}parameters:\n{written}".encode(), "f.yaml").parameters.values()

    # Types too: True is 1, and 1000.0 is 1000.
    assert [*map(repr, found)] == [*map(repr, expected.values())]


def test_a_byte_order_mark_and_dos_line_ends_are_accepted() -> None:
    data = b"\xef\xbb\xbf" + SOUND.replace("\n", "\r\n").encode()

    assert load(data, "f.yaml").name == "sound"


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 250_000,
        b"a: [" + b"1," * 129_000 + b"]",
        b"- " * 120_000,
        b"'" + b"a\n" * 120_000,
        b"a: " * 80_000,
        b"? " * 120_000,
        b"&a " * 80_000,
        b"a" * 250_000 + b": 1",
    ],
    ids=lambda data: data[:6].decode(),
)
def test_a_file_made_to_exhaust_memory_is_rejected_within_seconds(data: bytes) -> None:
    began = time.process_time()

    assert faults(data)
    # 0.6 s at most were measured; the bound only tells linear from worse.
    assert time.process_time() - began < 20
