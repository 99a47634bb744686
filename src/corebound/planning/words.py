"""What each key of a scenario holds, in words: the vocabulary of its faults."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import get_args

from msgspec import Struct

from corebound.model.plan import Backend, BindMoment, Framework, MemoryPolicy, NamedMode
from corebound.model.scenario import Allocator, WaitPolicy
from corebound.planning.tree import Node, Path, printable


class Words(Struct, frozen=True, kw_only=True):
    """`noun` completes "is not …"; `choices` are all the words it may be, if few."""

    noun: str
    mend: str
    choices: tuple[str, ...] = ()


def listed(words: Sequence[str], last: str = "or") -> str:
    """Words as a sentence lists them.

    >>> listed(["a", "b", "c"])
    'a, b or c'
    """
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _one_of(noun: str, choices: tuple[str, ...], more: str = "") -> Words:
    return Words(
        noun=noun, mend=f"Write {listed((*choices, *filter(None, [more])))}.", choices=choices
    )


def _whole(noun: str, low: int, high: int) -> Words:
    return Words(noun=noun, mend=f"Write a whole number from {low:,} to {high:,}.")


_TRUTH = Words(noun="true or false", mend="Write true or false.")
_COUNT = _whole("a count", 1, 65_536)
_LAUNCHES = _whole("a number of launches", 2, 1000)
_SHARE = Words(noun="a share", mend="Write a number between 0 and 1, such as 0.02 for 2 %.")
_ENTRY = Words(noun="a mapping of settings", mend="Write it as in `{binding: none, threads: 2}`.")
_ENTRIES = Words(
    noun="a list of at most 256 matrix entries",
    mend="Write each as `- {binding: none, threads: 2}`.",
)
_PROFILE = Words(noun="a profile", mend="Write keys of `measure`, `parameters` or `only` under it.")

WORDS: dict[str, Words] = {
    "schema": Words(noun="a version of this format", mend="Write `schema: 1`."),
    "name": Words(
        noun="a name",
        mend="Write up to 80 lower-case letters, digits, `.`, `_` or `-`, a letter or digit first.",
    ),
    "title": Words(noun="a title", mend="Write the heading of its page, as text."),
    "question": Words(noun="a question", mend="Write what it is to answer, as one question."),
    "source": Words(noun="a source", mend="Write the title of the study it repeats."),
    "workload": Words(
        noun="a workload",
        mend="Write a built-in's name, module:function or {command: [program, word, …]}.",
    ),
    "async": _TRUTH,
    "command": Words(
        noun="a list of words", mend="Write the program and each word by itself: [sort, -r, file]."
    ),
    "parameters": Words(
        noun="a mapping of parameters", mend="Write them as `name: value`, one on each line."
    ),
    "env": Words(noun="a mapping of environment variables", mend='Write them as `NAME: "value"`.'),
    "matrix": Words(
        noun="a mapping of axes", mend="Write axes as `threads: [1, 2]`, one on each line."
    ),
    "include": _ENTRIES,
    "exclude": _ENTRIES,
    "only": _ENTRIES,
    "measure": Words(
        noun="a mapping of how to measure", mend="Write keys such as `iterations: 100` under it."
    ),
    "profiles": Words(noun="a mapping of profiles", mend="Write quick: {…} or nightly: {…}."),
    "quick": _PROFILE,
    "nightly": _PROFILE,
    "baseline": _ENTRY,
    "claims": Words(
        noun="a list of at most 64 claims",
        mend="Write each with `says`, `faster` and `than`, after a `-`.",
    ),
    "says": Words(noun="a sentence", mend="Write what the source says, as text."),
    "faster": _ENTRY,
    "than": _ENTRY,
    "published_ratio": Words(
        noun="a ratio", mend="Write how many times as fast it was: 1.39 for 23 s against 32 s."
    ),
    "needs": Words(
        noun="a mapping of needs", mend="Write what the host must have, as in {smt: true}."
    ),
    "nodes": _COUNT,
    "cores": _COUNT,
    "gpu": _TRUTH,
    "npu": _TRUTH,
    "binding": _one_of("a binding", get_args(NamedMode), "{cpus: 0-3}"),
    "cpus": Words(noun="a CPU list", mend="Write numbers and ranges in one text: 0-3,8."),
    "smt": _TRUTH,
    "avoid_cpu0": _TRUTH,
    "core_kind": _one_of("a kind of core", ("performance", "efficiency")),
    "memory": _one_of("a memory policy", get_args(MemoryPolicy)),
    "backend": _one_of("a backend", get_args(Backend)),
    "bind": _one_of("a moment to bind", get_args(BindMoment)),
    "threads": _one_of(
        "a thread count",
        ("default", "per-core", "per-cpu", "host-cores", "cores-per-worker"),
        "a whole number from 1",
    ),
    "omp": Words(
        noun="a thread count", mend="Write host-cores or a whole number from 1 to 65,536."
    ),
    "mkl": _COUNT,
    "intra_op": _COUNT,
    "inter_op": _COUNT,
    "workers": _COUNT,
    "gpus": _whole("a number of GPUs", 0, 64),
    "wait_policy": _one_of("a wait policy", get_args(WaitPolicy)),
    "allocator": _one_of("an allocator", get_args(Allocator)),
    "framework": _one_of("a framework", get_args(Framework)),
    "environment": Words(
        noun="an environment", mend="Write the name of a file in environments/, without .txt."
    ),
    "commit": Words(
        noun="a commit",
        mend='Write a branch, a tag or a hash of the project under test, in quotes: "1a2b3c4d".',
    ),
    "warmup": Words(
        noun="a warm-up",
        mend="Write auto, {iterations: 10} or {seconds: 5}.",
        choices=("auto",),
    ),
    "iterations": _whole("a number of iterations", 1, 10_000_000),
    "seconds": Words(noun="a number of seconds", mend="Write a number from 0 to 86,400."),
    "launches": Words(noun="a mapping of launches", mend="Write it as in `{min: 6, max: 30}`."),
    "min": _LAUNCHES,
    "max": _LAUNCHES,
    "until_relative_ci": _SHARE,
    "margin": _SHARE,
    "operators": _whole("a number of iterations", 1, 1000),
    "relaunch_disturbed": _whole("a number of launches", 0, 100),
    "alternate": Words(
        noun="whether launches alternate",
        mend="Write auto, always or never.",
        choices=("auto", "always", "never"),
    ),
    "timeout_s": Words(
        noun="a number of seconds", mend="Write a number above 0, at most 604,800 (a week)."
    ),
}

# Where the place of a key, not its name alone, says what it holds.
_BY_PARENT: dict[tuple[str, str], Words] = {
    ("warmup", "iterations"): _whole("a number of iterations", 0, 10_000_000),
}

_ITEMS: dict[str, Words] = {
    "include": _ENTRY,
    "exclude": _ENTRY,
    "only": _ENTRY,
    "claims": Words(noun="a claim", mend="Write `says`, `faster` and `than` under the `-`."),
}

# What may be null, which says "not set" where an axis or an entry has to say it.
NULLABLE = frozenset(
    {"smt", "core_kind", "omp", "mkl", "intra_op", "inter_op", "wait_policy", "allocator"}
)


def words_for(path: Path, node: Node) -> Words:
    """What should stand at `path`, where `node` stands and is wrong."""
    names = [part for part in path if isinstance(part, str)]
    key, parent = names[-1], names[-2] if len(names) > 1 else ""
    is_item = isinstance(path[-1], int)
    if parent == "env" or (is_item and key == "command"):
        quoted = f'"{printable(node.text)}"'
        return Words(
            noun="text", mend=f"Put it in quotes: {quoted if is_item else f'{key}: {quoted}'}."
        )
    if not is_item and ((parent == "matrix" and key not in _NO_AXES) or names[:-1] == _AXES_BELOW):
        return _axis(key, node)
    if parent == "parameters":
        return _VALUE
    if is_item and key in _ITEMS:
        return _ITEMS[key]
    return _BY_PARENT.get((parent, key)) or WORDS[key]


_VALUE = Words(noun="a value of a parameter", mend="Write true, false, a number or text.")
_NO_AXES = frozenset({"parameters", "include", "exclude"})
_AXES_BELOW = ["matrix", "parameters"]


def _axis(name: str, node: Node) -> Words:
    if node.value == []:
        return Words(noun="an axis", mend="Write at least one value, or leave the axis out.")
    example = printable(node.text) or "…"
    return Words(noun="a list of values", mend=f"Write `{name}: [{example}]`.")


def shown(node: Node) -> str:
    """A value for a message, as it was written or in short."""
    if isinstance(node.value, dict):
        return "{…}" if node.value else "{}"
    if isinstance(node.value, list):
        inside = ", ".join(shown(child) for child in node.value)
        return f"[{inside}]" if len(inside) <= 40 else "[…]"
    return f'"{printable(node.text)}"' if node.quoted else printable(node.text)


def close_to(written: str, known: Sequence[str]) -> str | None:
    """The known word that `written` was probably meant to be."""
    return next(iter(get_close_matches(written, known, n=1)), None)


def label(path: Path) -> str:
    """The key that a value stands under, also for an item of its list."""
    return next((part for part in reversed(path) if isinstance(part, str)), "")
