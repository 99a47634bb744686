"""Specifies the files that set a configuration, each as its own program reads it."""

import ast
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.machine.topology import CpuId, NodeId
from corebound.planning.artefacts import KINDS, OF_FRAMEWORKS, Artefact, ArtefactKind, artefacts
from corebound.planning.commands import command
from corebound.planning.models import Placement, Slot
from corebound.scenario.cell import Binding, BindingMode, MemoryPolicy, Scalar, Threads
from corebound.scenario.runtimes import RUNTIMES, Framework
from support.build import a_cell
from support.texts import in_order


def written(
    *kinds: ArtefactKind,
    slots: tuple[tuple[int, ...], ...] = ((0, 1, 4),),
    memory: MemoryPolicy = "default",
    mode: BindingMode = "physical-cores",
    framework: Framework = "pytorch",
    parameters: tuple[tuple[str, Scalar], ...] = (),
    env: tuple[tuple[str, str], ...] = (),
    quota: float | None = None,
    threads: int | None = 3,
    about: tuple[str, ...] = (),
    program: tuple[str, ...] = (),
) -> tuple[Artefact, ...]:
    binding = Binding(mode=mode, memory=memory)
    cell = replace(
        a_cell(binding=binding, threads=Threads(rule=threads or "default")), framework=framework
    )
    cell = replace(cell, parameters=parameters, env=env, cpu_quota=quota)
    if RUNTIMES[framework].server is not None:
        cell = replace(cell, parameters=(("image", 224),))
    placement = Placement(
        slots=tuple(
            Slot(
                cpus=tuple(map(CpuId, cpus)),
                memory_nodes=() if memory == "default" else (NodeId(0),),
            )
            for cpus in slots
        ),
        threads=threads,
        backend="taskset" if memory == "default" else "numactl",
        memory=memory,
        moment="before-start",
        bound=mode not in {"none", "launcher"},
    )
    # A server is one command, which starts its workers.
    count = 1 if RUNTIMES[framework].server is not None else len(slots)
    commands = [command(cell, placement, index, "/env/python") for index in range(count)]
    return artefacts(cell, placement, commands, kinds or None, about=about, program=program)


def test_there_is_one_of_each_kind() -> None:
    common = [kind for kind in KINDS if kind not in OF_FRAMEWORKS]

    assert [one.kind for one in written()] == common
    # What a command runs is unknown, so files of particular programs are written on request.
    assert [one.kind for one in written(framework="none")] == common


@pytest.mark.parametrize(
    ("kind", "framework"),
    [(kind, framework) for kind, names in sorted(OF_FRAMEWORKS.items()) for framework in names],
)
def test_a_file_of_a_framework_is_written_for_that_framework_only(
    kind: ArtefactKind, framework: Framework
) -> None:
    assert written(kind) == ()
    (artefact,) = written(kind, framework=framework)
    assert artefact.kind == kind


def test_what_limits_cpu_time_has_the_quota_and_the_others_say_that_they_lack_it() -> None:
    systemd, docker, kubernetes = written("systemd", "docker", "kubernetes", quota=1.5)
    shell, env, python = written("shell", "env", "python", quota=1.5)

    assert "CPUQuota=150%" in systemd.text.splitlines()
    words = shlex.split(docker.text)
    assert words[words.index("--cpus") + 1] == "1.5"
    (container,) = yaml.safe_load(kubernetes.text)["spec"]["containers"]
    assert container["resources"]["limits"]["cpu"] == "1500m"
    kubernetes_validate.validate(yaml.safe_load(kubernetes.text), "1.29", strict=True)
    assert all("1.5 CPUs" in one.note for one in (shell, env, python))
    assert not any("quota" in one.note for one in (systemd, docker, kubernetes))


@pytest.mark.parametrize(
    ("quota", "percentage"), [(0.333333, "33.33%"), (0.01, "1%"), (12345.678, "1234567.8%")]
)
def test_systemd_gets_a_percentage_that_it_reads(quota: float, percentage: str) -> None:
    (systemd,) = written("systemd", quota=quota)

    assert f"CPUQuota={percentage}" in systemd.text.splitlines()


def test_several_processes_leave_a_shared_quota_to_the_reader_and_a_server_starts_once() -> None:
    several = written("systemd", "docker", slots=((0,), (1,)), quota=1.5)
    shell, systemd, docker = written(
        "shell", "systemd", "docker", slots=((0, 1), (0, 1)), framework="fastapi"
    )

    assert not any("CPUQuota" in one.text or "--cpus " in one.text for one in several)
    assert all("1.5 CPUs" in one.note for one in several)
    assert shell.text.count("taskset") == 1
    assert systemd.text.count("CPUAffinity=0-1") == 1
    assert len(docker.text.splitlines()) == 1


def test_torchserve_gets_its_workers_and_what_its_launcher_needs() -> None:
    (artefact,) = written(
        "torchserve", slots=((0, 2), (1, 3)), mode="launcher", framework="torchserve"
    )

    assert artefact.text.splitlines() == [
        "default_workers_per_model=2",
        "cpu_launcher_enable=true",
        "cpu_launcher_args=--core-list 0,2,1,3 --ncores-per-instance 2",
    ]
    assert "variables of `env`" in artefact.note


@pytest.mark.parametrize(
    ("framework", "mode", "has", "lacks"),
    [
        ("onnxruntime", None, "options.intra_op_num_threads = 3", "allow_spinning"),
        ("onnxruntime", "no-spinning", '"session.intra_op.allow_spinning", "0"', "affinities"),
        # CPUs are numbered from 1; the first thread, on CPU 0, is the caller's.
        ("onnxruntime", "pinned", '"session.intra_op_thread_affinities", "2;5"', "spinning"),
        ("openvino", None, "'NUM_STREAMS': 1", "THROUGHPUT"),
        ("openvino", None, "'INFERENCE_NUM_THREADS': 3", "PINNING"),
        ("openvino", "throughput", "'PERFORMANCE_HINT': 'THROUGHPUT'", "NUM_STREAMS"),
        ("openvino", "unpinned", "'ENABLE_CPU_PINNING': False", "THROUGHPUT"),
    ],
)
def test_a_session_gets_its_threads_and_the_mode_of_its_workload(
    framework: Any, mode: str | None, has: str, lacks: str
) -> None:
    parameters = (("mode", mode),) if mode else ()

    (artefact,) = written(framework, framework=framework, parameters=parameters)

    assert has in artefact.text
    assert lacks not in artefact.text
    assert ("sets no CPUs" in artefact.note) == (mode != "pinned")


def test_llama_cpp_gets_the_mask_of_the_cpus_of_each_process() -> None:
    (artefact,) = written("llama.cpp", framework="none", slots=((0, 1, 4), (2, 3)))
    (several,) = written("llama.cpp", framework="none")
    (one,) = written("llama.cpp", framework="none", slots=((2,),), threads=1)

    assert artefact.text.splitlines() == [
        "--threads 3 --cpu-mask 0x13 --cpu-strict 0",
        "--threads 3 --cpu-mask 0xc --cpu-strict 0",
    ]
    # With one thread it ignores the mask, and needs another program.
    assert "taskset" not in several.note
    assert "taskset -c 2" in one.note


def test_vllm_gets_a_cpu_for_each_thread() -> None:
    (bound,) = written("vllm", framework="none", slots=((0, 1, 4, 5), (2, 3, 6, 7)))
    (unbound,) = written("vllm", framework="none", mode="none")

    assert "VLLM_CPU_OMP_THREADS_BIND='0-1,4|2-3,6'" in bound.text
    assert "--data-parallel-size 2" in bound.note
    assert "VLLM_CPU_OMP_THREADS_BIND=nobind" in unbound.text
    assert "OMP_NUM_THREADS=3" in unbound.text


@pytest.mark.parametrize(
    ("slots", "threads", "bound", "note"),
    [
        (((0, 1, 2, 3),), 4, "0-2", "starts 3 of 4 threads"),
        (((0, 1, 2, 3),), None, "0-2", "starts 3 of 4 threads"),
        (((0, 1, 2, 3),), 2, "0-1", ""),
        (((0,), (1,)), 1, "'0|1'", "none is left for the scheduler"),
        (((0, 1, 2, 3), (0, 1, 2, 3)), 2, "'0|2'", "--data-parallel-size 2"),
    ],
)
def test_vllm_leaves_a_cpu_to_its_scheduler_and_engines_share_none(
    slots: tuple[tuple[int, ...], ...], threads: int | None, bound: str, note: str
) -> None:
    (file,) = written("vllm", framework="none", slots=slots, threads=threads)

    assert f"VLLM_CPU_OMP_THREADS_BIND={bound}\n" in file.text
    assert note in file.note


def test_the_shell_script_starts_a_tool_with_the_options_that_were_chosen(tmp_path: Path) -> None:
    shell, env = written(
        "shell", "env", slots=((0,),), program=("echo", "-t", "3", "a b"),
        framework="none", parameters=(("model", "m"),),
    )  # fmt: skip
    script = tmp_path / shell.file
    script.write_text(shell.text)

    started, other = (
        subprocess.run(["sh", script, *words], capture_output=True, text=True, check=True).stdout
        for words in ((), ("echo", "other"))
    )

    assert (started, other) == ("-t 3 a b\n", "other\n")
    assert "`echo -t 3 'a b'`" in env.note


def test_the_shell_script_runs_a_command_with_its_variables(tmp_path: Path) -> None:
    (shell,) = written("shell", slots=((0,),))
    script = tmp_path / shell.file
    script.write_text(shell.text)

    said = subprocess.run(
        ["sh", script, "sh", "-c", "taskset -cp $$; echo $OMP_NUM_THREADS $1", "-", "a b"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert said.splitlines()[0].endswith(": 0")
    assert said.splitlines()[1] == "3 a b"


def test_a_drop_in_and_docker_have_cpus_and_memory_nodes() -> None:
    systemd, docker = written("systemd", "docker", memory="bind")

    assert systemd.text.splitlines()[:4] == [
        "[Service]", "CPUAffinity=0-1,4", "NUMAPolicy=bind", "NUMAMask=0",
    ]  # fmt: skip
    assert 'Environment="OMP_NUM_THREADS=3"' in systemd.text
    words = shlex.split(docker.text)
    assert words[words.index("--cpuset-cpus") + 1] == "0-1,4"
    assert words[words.index("--cpuset-mems") + 1] == "0"


def test_each_worker_has_a_drop_in_of_its_own_and_they_start_together() -> None:
    first, second, shell = written("systemd", "shell", slots=((0, 1), (2, 3)))

    assert [one.file for one in (first, second)] == [
        f"NAME@{number}.service.d/corebound.conf" for number in range(2)
    ]
    assert "CPUAffinity=0-1" in first.text
    assert "CPUAffinity=2-3" in second.text
    assert in_order(shell.text, "taskset -c 0-1", "taskset -c 2-3")
    assert shell.text.endswith("wait\n")


@pytest.mark.parametrize(
    ("value", "is_quoted"),
    [
        ("", False),
        ("{0},{1}", False),
        ("a=b:c", False),
        ("a b", True),
        ("$HOME", True),
        ("~", True),
    ],
)
def test_an_environment_file_has_quotes_only_where_a_shell_needs_them(
    value: str, is_quoted: bool
) -> None:
    (env,) = written("env", env=(("MY_VALUE", value),))

    line = next(one for one in env.text.splitlines() if one.startswith("MY_VALUE="))
    read = subprocess.run(
        ["sh", "-c", f'{line}\nprintf %s "$MY_VALUE"'], capture_output=True, text=True, check=True
    )
    assert read.stdout == value
    assert (line != f"MY_VALUE={value}") == is_quoted
    assert ("MY_VALUE" in env.note) == is_quoted


def test_the_python_code_binds_before_it_imports_the_framework() -> None:
    (python,) = written("python")

    lines = [ast.unparse(statement) for statement in ast.parse(python.text).body]
    binds = next(i for i, line in enumerate(lines) if "sched_setaffinity(0, {0, 1, 4})" in line)
    assert binds < lines.index("import torch")
    assert lines[-1] == "torch.set_num_threads(3)"


@pytest.mark.parametrize(
    ("value", "in_unit"),
    [("50%", "50%%"), ('a "b"', r"a \"b\""), (r"C:\d", r"C:\\d"), ("$HOME", "$HOME")],
)
def test_a_variable_in_a_drop_in_is_escaped(value: str, in_unit: str) -> None:
    (systemd,) = written("systemd", env=(("NOTE", value),))

    assert f'Environment="NOTE={in_unit}"' in systemd.text.splitlines()


def test_a_pod_leaves_its_cpus_to_the_cpu_manager() -> None:
    env = (("OMP_PLACES", "{0},{1}"), ("NOTE", "$(HOME)"))
    (pod,) = written("kubernetes", env=env)

    variables = yaml.safe_load(pod.text)["spec"]["containers"][0]["env"]
    by_name = {one["name"]: one["value"] for one in variables}
    assert "OMP_PLACES" not in by_name
    assert by_name["NOTE"] == "$$(HOME)"  # not another variable


def test_a_pod_requests_whole_cpus_and_is_guaranteed() -> None:
    (pod,) = written("kubernetes")

    manifest = yaml.safe_load(pod.text)
    kubernetes_validate.validate(manifest, "1.33", strict=True)
    container = manifest["spec"]["containers"][0]
    # Guaranteed QoS: requests equal limits; the static CPU manager needs whole CPUs.
    assert container["resources"]["requests"] == container["resources"]["limits"]
    assert container["resources"]["limits"]["cpu"] == "3"


@pytest.mark.parametrize("kind", ["systemd", "docker", "python", "kubernetes"])
def test_a_launcher_is_started_by_a_command_only(kind: ArtefactKind) -> None:
    assert written(kind, mode="launcher") == ()


def test_an_unbound_configuration_names_no_cpus() -> None:
    texts = "".join(one.text for one in written(mode="none"))

    assert "taskset" not in texts
    assert "CPUAffinity" not in texts
    assert "cpuset" not in texts
    assert "sched_setaffinity" not in texts


@pytest.mark.parametrize("kind", ["env", "shell", "systemd", "docker", "kubernetes"])
def test_variables_that_only_corebound_reads_are_not_handed_over(kind: ArtefactKind) -> None:
    for artefact in written(kind, framework="torchserve"):
        assert "OMP_NUM_THREADS" in artefact.text
        assert "COREBOUND_" not in artefact.text


def test_a_parameter_that_won_the_race_is_named_because_no_file_sets_it() -> None:
    cell = replace(
        a_cell(axes=(("binding", "none"), ("jobs", "4"))), parameters=(("jobs", 4), ("rows", 100))
    )
    placement = Placement(
        slots=(Slot(cpus=(CpuId(0),), memory_nodes=()),),
        threads=None,
        backend="none",
        memory="default",
        moment="before-start",
        bound=False,
    )

    files = artefacts(cell, placement, [command(cell, placement, 0, "/env/python")])

    assert files
    assert {file.kind for file in files} == {"kubernetes"}
    assert all("jobs=4" in file.note and "rows" not in file.note for file in files)


# What a path or the name of a host may have, and what some format takes for more than a comment.
ODD_LINES = st.lists(
    st.text()
    | st.sampled_from(["coding: latin-9", "-*- coding=nonsense -*-", "'", '"', "a\\", "x\nexit 1"])
)
OF_ANY = {kind: names[0] if (names := OF_FRAMEWORKS.get(kind)) else "pytorch" for kind in KINDS}


@given(about=ODD_LINES.filter(bool), kind=st.sampled_from(KINDS))
def test_where_a_file_comes_from_is_said_in_comments_and_changes_nothing_else(
    about: list[str], kind: ArtefactKind
) -> None:
    (plain,) = written(kind, framework=OF_ANY[kind])
    (artefact,) = written(kind, framework=OF_ANY[kind], about=tuple(about))

    if artefact.readme:
        assert (kind, artefact.text) == ("llama.cpp", plain.text)
        return
    lines = artefact.text.split("\n")
    added = 2 + len(about)
    first = lines.index(next(line for line in lines if line.startswith("# ")))
    assert all(line.startswith("# ") for line in lines[first : first + added])
    assert "\n".join(lines[:first] + lines[first + added :]) == plain.text
    if artefact.file.endswith(".py"):
        assert ast.dump(ast.parse(artefact.text.encode())) == ast.dump(ast.parse(plain.text))
    if kind == "kubernetes":
        assert yaml.safe_load(artefact.text) == yaml.safe_load(plain.text)


@given(about=ODD_LINES)
def test_a_script_with_comments_is_the_same_for_a_shell(about: list[str]) -> None:
    for kind in ("shell", "docker", "env"):
        plain, commented = (written(kind, about=tuple(lines))[0].text for lines in ((), about))
        of_plain, of_commented = (
            shlex.split(text.replace("\n", " ;\n"), comments=True) for text in (plain, commented)
        )
        assert [word for word in of_commented if word != ";"] == [
            word for word in of_plain if word != ";"
        ]


def test_a_pod_has_valid_names_and_its_memory_is_marked_as_an_assumption() -> None:
    (pod,) = written("kubernetes", env=(("MEMORY", "4Gi"), ("NOTE", "a 4Gi b")))

    manifest = yaml.safe_load(pod.text)
    (container,) = manifest["spec"]["containers"]
    # A label of RFC 1123.
    for name in (manifest["metadata"]["name"], container["name"]):
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name)
    of_memory = [line for line in pod.text.splitlines() if line.strip().startswith("memory:")]
    assert len(of_memory) == 2
    assert all("# assumed" in line for line in of_memory)
    assert {"name": "NOTE", "value": "a 4Gi b"} in container["env"]


@pytest.mark.parametrize("kind", KINDS)
def test_no_file_is_written_that_has_nothing_to_set(kind: ArtefactKind) -> None:
    default = written(kind, framework=OF_ANY[kind], mode="none", threads=None)

    # What these say holds only with them: a process's share of a node, a server's number of
    # workers, one stream, and that vLLM must not bind.
    assert bool(default) == (kind in {"kubernetes", "torchserve", "openvino", "vllm"})


def test_torchserves_launcher_needs_no_variables() -> None:
    files = written(
        "torchserve",
        "env",
        slots=((0,), (1,)),
        mode="launcher",
        framework="torchserve",
        threads=None,
    )

    assert [file.kind for file in files] == ["torchserve"]
    assert "env" not in files[0].note
