"""Files that a program or a parser would refuse are found."""

import sys

import pytest

from corebound.planning.artefacts import Artefact, ArtefactKind
from corebound.workflow.artefact_checks import check_artefact
from support import needs

GOOD_FLAGS = "--threads 3 --cpu-mask 0x13 --cpu-strict 0\n"
PINNED_POD = """\
spec:
  containers:
  - resources:
      requests: {cpu: "2"}
      limits: {cpu: "%s"}
"""


def an_artefact(kind: ArtefactKind, text: str) -> Artefact:
    return Artefact(kind=kind, title=kind, file="a-file", text=text)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("llama.cpp", GOOD_FLAGS),
        ("llama.cpp", "\n"),
        ("vllm", "VLLM_CPU_OMP_THREADS_BIND='0-1,4|2-3,6'\n"),
        ("vllm", "VLLM_CPU_OMP_THREADS_BIND=nobind\nOMP_NUM_THREADS=2\n"),
        ("torchserve", "default_workers_per_model=2\n"),
        ("docker", "docker run --cpuset-cpus 0-1 IMAGE\n"),
        ("kubernetes", PINNED_POD % 2),
        ("shell", "exec env OMP_NUM_THREADS=2 true\n"),
        ("python", "import os\n"),
    ],
)
def test_a_correct_file_is_accepted(kind: ArtefactKind, text: str) -> None:
    assert check_artefact(an_artefact(kind, text), python=sys.executable).state == "checked"


@needs.systemd
@pytest.mark.parametrize(
    ("line", "state"),
    [
        ('Environment="NOTE=50%% of \\"it\\""', "checked"),
        ('Environment="NOTE=a', "wrong"),
        ("CPUQuota=33.3%", "checked"),
        ("CPUAffinity=nine", "wrong"),
        ("NoSuchSetting=1", "wrong"),
    ],
)
def test_systemd_itself_reads_a_drop_in(line: str, state: str) -> None:
    artefact = an_artefact("systemd", f"[Service]\n{line}\n")

    assert check_artefact(artefact, python=sys.executable).state == state


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("llama.cpp", "--threads 0\n", "no number of threads: 0"),
        ("llama.cpp", "--cpu-mask 0x0\n", "no mask of CPUs: 0x0"),
        ("llama.cpp", f"--cpu-mask 0x1{'0' * 128}\n", "no mask of CPUs"),
        ("vllm", "VLLM_CPU_OMP_THREADS_BIND='|0'\n", "no CPU lists: |0"),
        ("torchserve", "default workers = 2\n", "no setting"),
        ("docker", "docker run --cpuset-cpus '' IMAGE\n", "--cpuset-cpus is empty"),
        ("kubernetes", PINNED_POD % 3, "the requests differ"),
        ("shell", "if true\n", "yntax error"),
        # Its own framework runs it: here, none has the module.
        ("openvino", "import no_such_module\n", "ModuleNotFoundError"),
    ],
)
def test_a_wrong_file_is_explained(kind: ArtefactKind, text: str, said: str) -> None:
    proof = check_artefact(an_artefact(kind, text), python=sys.executable)

    assert proof.state == "wrong"
    assert said in proof.evidence
