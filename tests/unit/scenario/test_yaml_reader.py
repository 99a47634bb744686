"""Whatever bytes a file holds, loading it names what is wrong and where."""

from __future__ import annotations

import time

import pytest

from corebound.errors import ScenarioFaults
from corebound.scenario.loader import load

SOUND = """\
schema: 1
name: sound
title: A sound scenario
question: Is it sound?
workload: my_module:setup
"""


def faults(text: str | bytes) -> list[str]:
    data = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(ScenarioFaults) as caught:
        load(data, "f.yaml")
    return [str(fault) for fault in caught.value.faults]


CASES: dict[str, tuple[str | bytes, list[str]]] = {
    "an empty file": ("", ["f.yaml:1: the file is empty. Begin it with `schema: 1`."]),
    "only a comment": (
        "# later\n",
        ["f.yaml:1: the file is empty. Begin it with `schema: 1`."],
    ),
    "a list at the root": (
        "\n- schema: 1\n",
        [
            (
                "f.yaml:2: this is not a scenario, which is a mapping of keys to values."
                " Write keys such as `name: gemm` without indentation."
            )
        ],
    ),
    "a word at the root": (
        "gemm",
        [
            (
                "f.yaml:1: this is not a scenario, which is a mapping of keys to values."
                " Write keys such as `name: gemm` without indentation."
            )
        ],
    ),
    "a tab": (
        SOUND + "matrix:\n\tthreads: [1]\n",
        ["f.yaml:7: there is a tab where YAML allows only spaces. Indent with spaces."],
    ),
    "a second colon": (
        SOUND + "source: Threads: how many\n",
        [
            (
                "f.yaml:6: a `:` is not allowed here. Check the indentation,"
                " and put text that contains `: ` in quotes."
            )
        ],
    ),
    "an open quote": (
        SOUND + "source: 'never closed\nthreads: 2\n",
        [
            (
                "f.yaml:6: a quote that opens here is not closed properly."
                " Close it, and double a backslash that is meant literally."
            )
        ],
    ),
    "an open bracket": (
        SOUND + "matrix:\n  threads: [1, 2\nsmt: true\n",
        [
            (
                "f.yaml:7: a `[` that opens here is not closed properly."
                " Close it with `]`, and put commas between the values."
            )
        ],
    ),
    "an open brace": (
        SOUND + "baseline: {threads: 1\nsmt: true\n",
        [
            (
                "f.yaml:6: a `{` that opens here is not closed properly."
                " Close it with `}`, and put commas between the entries."
            )
        ],
    ),
    "a bracket too many": (
        SOUND + "matrix: {threads: [1, 2]}}\n",
        ["f.yaml:6: a `}` closes nothing here. Remove it, or open a mapping with `{`."],
    ),
    "an unknown escape": (
        SOUND + 'source: "C:\\qux"\n',
        [
            (
                "f.yaml:6: a backslash in double quotes begins no escape here."
                " Double it, or use single quotes."
            )
        ],
    ),
    "a value of YAML's own": (
        SOUND + "source: @me\n",
        [
            (
                "f.yaml:6: a value here starts with a character that YAML reserves."
                " Put the value in quotes."
            )
        ],
    ),
    "a glob": (
        SOUND + "source: *.txt\n",
        ["f.yaml:6: a `*` or `&` here begins the name of no anchor. Put the value in quotes."],
    ),
    "ragged indentation": (
        SOUND + "measure:\n    iterations: 3\n  margin: 0.1\n",
        [
            (
                "f.yaml:8: this line does not fit the indentation above it."
                " Indent all keys of one mapping, and all items of one list, alike."
            )
        ],
    ),
    "a key without a colon": (
        SOUND + "matrix:\n  threads [1]\n  smt: [true]\n",
        [
            (
                "f.yaml:8: a `:` is not allowed here. Check the indentation,"
                " and put text that contains `: ` in quotes."
            )
        ],
    ),
    "two documents": (
        SOUND + "---\n" + SOUND,
        ["f.yaml:6: a second document begins here. Keep one scenario in each file."],
    ),
    "a key twice": (
        SOUND + "threads: 1\nsmt: true\nthreads: 2\n",
        ["f.yaml:8: `threads` appears here and on line 6. Keep one of them."],
    ),
    "keys that are not text": (
        SOUND + "1: a\nnull: b\ntrue: c\n? [a]\n: d\n",
        [
            "f.yaml:6: the key `1` is not text. Write keys as plain words.",
            "f.yaml:7: the key `null` is not text. Write keys as plain words.",
            "f.yaml:8: the key `true` is not text. Write keys as plain words.",
            "f.yaml:9: a key here is not text. Write keys as plain words.",
        ],
    ),
    "a merge key": (
        SOUND + "measure: &m {iterations: 3}\nprofiles:\n  quick:\n    <<: *m\n",
        ["f.yaml:9: `<<` (merge) is not supported. Write the keys out."],
    ),
    "a tag": (
        SOUND + "threads: !!int '2'\nsource: !!python/name:os.system x\n",
        [
            "f.yaml:6: YAML tags such as `!!int` are not supported. Write the plain value.",
            (
                "f.yaml:7: YAML tags such as `!!python/name:os.system` are not supported."
                " Write the plain value."
            ),
        ],
    ),
    "an alias of nothing": (
        SOUND + "threads: *many\n",
        ["f.yaml:6: `*many` refers to no anchor above. Mark a value with `&many`."],
    ),
    "an alias of itself": (
        SOUND + "matrix: &m\n  threads: [*m]\n",
        ["f.yaml:7: `*m` is used within `&m`. Write the value out."],
    ),
    "numbers that are none": (
        SOUND + "measure:\n  margin: .nan\n  timeout_s: -.inf\n  iterations: 1e999\n",
        [
            "f.yaml:7: `.nan` is not a finite number. Write a number.",
            "f.yaml:8: `-.inf` is not a finite number. Write a number.",
            "f.yaml:9: `1e999` is too large a number. Write a smaller one, or text in quotes.",
        ],
    ),
    "a number beyond 64 bits": (
        SOUND + f"parameters: {{a: {2**63}, b: {'9' * 5000}}}\n",
        [
            (
                "f.yaml:6: `9223372036854775808` is too large a number."
                " Write a smaller one, or text in quotes."
            ),
            (
                f"f.yaml:6: `{'9' * 39}…` is too large a number."
                " Write a smaller one, or text in quotes."
            ),
        ],
    ),
    "a NUL by escape": (
        SOUND + 'env: {A: "a\\0b"}\n',
        ["f.yaml:6: this text holds the control character U+0000. Remove it."],
    ),
    "half a character": (
        SOUND + 'source: "\\uD83D"\n',
        ["f.yaml:6: `\\uD83D` is half a character. Write the character itself."],
    ),
    "an escape beyond Unicode": (
        SOUND + 'source: "\\UFFFFFFFF"\n',
        [
            (
                "f.yaml:6: a number in an escape or a directive from here on is too large."
                " Write the character itself."
            )
        ],
    ),
    "another encoding": (
        SOUND.encode() + "source: Übung\n".encode("latin-1"),
        ["f.yaml:6: this is not UTF-8 text. Save it as UTF-8."],
    ),
    "UTF-16": (SOUND.encode("utf-16"), ["f.yaml:1: this is not UTF-8 text. Save it as UTF-8."]),
    "a NUL": (
        SOUND.encode() + b"\0",
        [
            (
                "f.yaml:6: the character U+0000 is not allowed in a scenario."
                " Remove it; an editor may not show it."
            )
        ],
    ),
    "a line break that editors do not show": (
        SOUND + "source: a\u2028b\n",
        [
            (
                "f.yaml:6: the character U+2028 is not allowed in a scenario."
                " Remove it; an editor may not show it."
            )
        ],
    ),
    "deep nesting": (
        SOUND + "matrix: " + "[" * 5000,
        ["f.yaml:6: this is nested more than 16 deep. Reduce the nesting."],
    ),
    "too large a file": (
        "#" * 300_000,
        [
            (
                "f.yaml:1: the file has 300,000 bytes, more than a scenario may have."
                " Keep it under 262,144."
            )
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_syntax_error_is_reported_with_its_line(name: str) -> None:
    text, expected = CASES[name]

    assert faults(text) == expected


def test_faults_of_the_text_and_of_the_scenario_are_reported_together() -> None:
    text = SOUND + "threads: 1\nthreads: 2\nbindng: none\nmeasure: {margin: .nan, iterations: 0}\n"

    assert faults(text) == [
        "f.yaml:7: `threads` appears here and on line 6. Keep one of them.",
        "f.yaml:8: `bindng` is not a known key. Did you mean `binding`?",
        "f.yaml:9: `.nan` is not a finite number. Write a number.",
        (
            "f.yaml:9: `iterations: 0` is not a number of iterations."
            " Write auto or a whole number to 10,000,000."
        ),
    ]


def test_aliases_that_expand_exponentially_are_rejected_at_once() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    for one, next_one in zip("abcdefghi", "bcdefghij", strict=True):
        lines.append(f"{next_one}: &{next_one} [{', '.join([f'*{one}'] * 10)}]")

    (fault,) = faults("\n".join(lines))

    assert fault == (
        "f.yaml:5: the file holds more than 50,000 values, aliases written out."
        " Split it, or use fewer aliases."
    )


def test_an_anchor_and_its_alias_are_one_value() -> None:
    text = (
        SOUND
        + "baseline: &plain {binding: none}\nclaims:\n"
        + ("- {says: x, faster: {binding: node}, than: *plain}\nmatrix: {binding: [none, node]}\n")
    )

    scenario = load(text.encode(), "f.yaml")

    assert scenario.claims[0].than == scenario.baseline


def test_a_fault_in_an_alias_is_reported_where_it_is_used() -> None:
    text = SOUND + "parameters: {a: &many 0}\nthreads: *many\n"

    assert faults(text)[0].startswith("f.yaml:7: `threads: 0` is not a thread count.")


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("yes", "yes"),
        ("off", "off"),
        ("1:30", "1:30"),
        ("2026-01-31", "2026-01-31"),
        ("1_000", "1_000"),
        ("010", 10),
        ("0x1F", 31),
        ("0o17", 15),
        ("-3", -3),
        ("True", True),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("'12'", "12"),
        ("0,2", "0,2"),
        ("null-ish", "null-ish"),
    ],
)
def test_scalars_are_those_of_yaml_1_2(written: str, value: object) -> None:
    scenario = load((SOUND + f"parameters:\n  a: {written}\n").encode(), "f.yaml")

    found = scenario.parameters["a"]
    assert (found, type(found)) == (value, type(value))


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
