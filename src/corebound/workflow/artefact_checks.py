"""Check the files of `corebound tune --emit` by their own programs, or else by parsers."""

import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import yaml

from corebound.analysis.tuning_checks import ArtefactProof
from corebound.machine.topology import parse_cpu_list
from corebound.planning.artefacts import Artefact, ArtefactKind

_TIMEOUT_S = 30
# Their files are Python code, which the framework itself can run.
_RUN_BY_FRAMEWORK: frozenset[ArtefactKind] = frozenset({"onnxruntime", "openvino"})
_CPU_LISTS = r"nobind|\d[\d,-]*(\|\d[\d,-]*)*"
# Source: GGML_MAX_N_THREADS, the bits of a mask.
_MOST_LLAMA_CPUS = 512


def check_artefact(artefact: Artefact, *, python: str) -> ArtefactProof:
    """Check an artefact without a launch through it."""
    if artefact.kind in _RUN_BY_FRAMEWORK:
        checked = f"{artefact.title} accepted it"
        problems = _failure([python, "-c", artefact.text])
    else:
        checked = "its syntax was checked"
        problems = _CHECKS[artefact.kind](artefact.text)
    problem = "; ".join(problems)
    if problem:
        return ArtefactProof(artefact=artefact, state="wrong", evidence=problem)
    return ArtefactProof(
        artefact=artefact, state="checked", evidence=f"Not tested here; {checked}."
    )


def _said(argv: list[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, input=stdin, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
    )


def _failure(argv: list[str], stdin: str = "") -> Iterable[str]:
    """The last line that a program says if it fails."""
    said = _said(argv, stdin)
    if said.returncode:
        yield said.stderr.strip().splitlines()[-1]


def _shell_problems(text: str) -> Iterable[str]:
    return _failure(["sh", "-n"], text)


def _python_problems(text: str) -> Iterable[str]:
    try:
        compile(text, "corebound_setup.py", "exec")
    except SyntaxError as error:
        yield str(error)


def _systemd_problems(text: str) -> Iterable[str]:
    """What `systemd-analyze verify` says; nothing where it is not installed."""
    program = shutil.which("systemd-analyze")
    if program is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        unit = Path(folder) / "checked.service"
        unit.write_text(f"{text}\n[Service]\nExecStart=/bin/true\n")
        said = _said([program, "verify", str(unit)])
    yield from (line for line in said.stderr.splitlines() if line.startswith(f"{unit}:"))


def _docker_problems(text: str) -> Iterable[str]:
    for words in (shlex.split(line, comments=True) for line in text.splitlines()):
        for option in ("--cpuset-cpus", "--cpuset-mems"):
            if option in words and not parse_cpu_list(words[words.index(option) + 1]):
                yield f"{option} is empty"


def _kubernetes_problems(text: str) -> Iterable[str]:
    container = yaml.safe_load(text)["spec"]["containers"][0]
    if container["resources"]["requests"] != container["resources"]["limits"]:
        yield "the requests differ from the limits"


def _torchserve_problems(text: str) -> Iterable[str]:
    # java.util.Properties accepts more, but nothing else is meant here.
    return (
        f"no setting: {line}"
        for line in text.splitlines()
        if not re.fullmatch(r"#.*|[a-z_]+=\S.*", line)
    )


def _llama_cpp_problems(text: str) -> Iterable[str]:
    for words in map(shlex.split, text.splitlines()):
        flags = dict(zip(words[::2], words[1::2], strict=True))
        if int(flags.get("--threads", 1)) < 1:
            yield f"no number of threads: {flags['--threads']}"
        if not 0 < int(flags.get("--cpu-mask", "0x1"), 16) < 1 << _MOST_LLAMA_CPUS:
            yield f"no mask of CPUs: {flags['--cpu-mask']}"


def _vllm_problems(text: str) -> Iterable[str]:
    env = dict(line.split("=", 1) for line in shlex.split(text, comments=True))
    if not re.fullmatch(_CPU_LISTS, cpus := env["VLLM_CPU_OMP_THREADS_BIND"]):
        yield f"no CPU lists: {cpus}"


_CHECKS: Mapping[ArtefactKind, Callable[[str], Iterable[str]]] = {
    "shell": _shell_problems,
    "env": _shell_problems,
    "python": _python_problems,
    "systemd": _systemd_problems,
    "docker": _docker_problems,
    "kubernetes": _kubernetes_problems,
    "torchserve": _torchserve_problems,
    "llama.cpp": _llama_cpp_problems,
    "vllm": _vllm_problems,
}
