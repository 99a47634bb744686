"""Names in braces in the words of a command and in variables: `{threads}`, `{model}`."""

import re
from collections.abc import Callable, Collection, Mapping

# What a cell provides, beside its parameters, which take precedence. `{port}` is only known when
# the command starts, so that a plan leaves it as it is.
PROVIDED: Mapping[str, str] = {
    "threads": "the threads of each worker; without `threads`, one for each of its CPUs",
    "cpus": "the CPUs of the worker, as in 0-3,8",
    "workers": "the number of workers",
    "gpus": "the number of GPUs",
    "port": "a TCP port of 127.0.0.1 that is free",
}

_PLACEHOLDER = re.compile(r"\{\{([A-Za-z_]\w*)\}\}|\{([A-Za-z_]\w*)\}")
# A word that is only a placeholder, or the value of an option, is not program text.
_VALUE = re.compile(r"(?:-*[\w.-]+[=:])?\{([A-Za-z_]\w*)\}")


def placeholders_in(text: str) -> frozenset[str]:
    """The names in braces in a text, without those in double braces.

    >>> sorted(placeholders_in("--threads={threads} {print $1} {{name}}"))
    ['threads']
    """
    return frozenset(name for _, name in _PLACEHOLDER.findall(text) if name)


def fill(text: str, values: Mapping[str, str], quote: Callable[[str], str] = str) -> str:
    """Replace the names in braces that have a value, and `{{name}}` by `{name}`.

    Other text in braces stays as it is.

    Args:
        text: A word of a command, a shell's text or the value of a variable.
        values: Their values, by name.
        quote: Applied to each value, for a shell.

    >>> fill("{a}-{b}-{{a}}", {"a": "1"})
    '1-{b}-{a}'
    """

    def value_of(match: re.Match[str]) -> str:
        kept, name = match.groups()
        if kept is not None:
            return f"{{{kept}}}"
        return quote(values[name]) if name in values else match[0]

    return _PLACEHOLDER.sub(value_of, text)


def unknown_placeholder(word: str, parameters: Collection[str]) -> str | None:
    """The placeholder of a word that is neither a parameter nor provided; None if it has none.

    Only words that are one, and values of options, are judged: others may be program text.

    >>> unknown_placeholder("--model={model}", ()), unknown_placeholder("print(f'{x}')", ())
    ('model', None)
    """
    match = _VALUE.fullmatch(word)
    return None if match is None or match[1] in {*parameters, *PROVIDED} else match[1]
