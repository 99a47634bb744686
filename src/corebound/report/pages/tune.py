"""The page of a run of `corebound tune`: what to set, the race, and how sure that is."""

from collections.abc import Mapping, Sequence
from itertools import dropwhile

from corebound.analysis.suggested_commands import original_command
from corebound.analysis.tuning import TuneResult
from corebound.analysis.tuning_checks import Answer, ArtefactProof, Verification
from corebound.analysis.tuning_loads import LoadsResult
from corebound.analysis.wording import Flag, Tone, capital, count, day, label, mode_class, rich
from corebound.planning.artefacts import ArtefactKind
from corebound.present import tune
from corebound.present.sections import Fact
from corebound.report.charts.axis import linear_or_log_axis
from corebound.report.charts.lines import Curve, CurveChart, CurvePoint
from corebound.report.elements import Content, Head, Hero, Page
from corebound.report.urls import data_of, tune_file
from corebound.scenario.loader import load_document
from corebound.scenario.objectives import OBJECTIVES
from corebound.units import duration

# What a file is for, by its kind.
_PURPOSES: Mapping[ArtefactKind, str] = {
    "shell": "Starts any command with it.",
    "env": "Sets variables, for a shell, systemd or a container.",
    "python": "Sets it inside a Python program.",
    "systemd": "Sets it for a service.",
    "docker": "Starts a container with it.",
    "kubernetes": "Asks for a pod with as many CPUs.",
    "torchserve": "Configures TorchServe.",
    "onnxruntime": "Configures a session of ONNX Runtime.",
    "openvino": "Configures a compiled model of OpenVINO.",
    "llama.cpp": "Starts llama.cpp with it.",
    "vllm": "Starts vLLM with it.",
}


def tune_page(
    result: TuneResult,
    files: Sequence[ArtefactProof],
    *,
    loads: LoadsResult | None,
    verified: Verification | None = None,
    now: str,
) -> Page:
    """Build the page of a run of `corebound tune`.

    Args:
        files: The artefacts of the recommended configuration.
        loads: The races for all loads of the scenario, if there are several.
        verified: The latest check of its recommendation; None if it was not checked.
        now: ISO timestamp of the page.
    """
    scenario = load_document(result.source.document, result.source.path)
    load = tune.load_text(result.tuning)
    of = f"{scenario.title}, {load}" if load else scenario.title
    run = result.run
    address = tune_file(run, scenario.name, result.tuning)
    lost = verified if verified is not None and verified.answer == "lost" else None
    return Page(
        address=address,
        title=of,
        summary=tune.headline(result, bounds=False)
        if lost is None
        else tune.verification_text(lost),
        head=Head(
            title=f"Corebound: Tune {of}",
            description=tune.headline(result),
            made=f"Page made {day(now)}.",
        ),
        hero=Hero(
            title="Tune",
            question=f"Which configuration gives {of} the best {result.tuning.objective} on this"
            " host?",
            context=f"{of} · {run.host.name} · {day(run.started_at)}",
            verdict=rich(tune.headline(result, bounds=False)),
            support=rich(_support(result)),
            flags=() if verified is None else (_verified_flag(verified),),
        ),
        command=original_command(run),
        value=capital(tune.value_name(result)),
        files=[(proof, _PURPOSES[proof.artefact.kind], _body(proof)) for proof in files],
        stages=tune.stages(result),
        race=tune.race_table(result),
        screened=tune.screened_table(result),
        tradeoff=None if OBJECTIVES[result.tuning.objective].is_cpu_time else _tradeoff(result),
        # The first sentence is at the top.
        sure=tune.certainty(result)[1:],
        not_tried=tune.not_tried(result),
        same=tune.same_as_others(result),
        changes=_changes(result),
        verify=tune.verify_command(result),
        loads=(tune.common_sentence(loads), tune.loads_table(loads, _address))
        if loads is not None
        else None,
        data=f"../{data_of(address, 'json')}",
    )


_SIGNS: Mapping[Answer, tuple[Tone, str]] = {
    "holds": ("good", "✓"),
    "lost": ("bad", "✗"),
    "inconclusive": ("warn", "?"),
}


def _verified_flag(verified: Verification) -> Flag:
    """Whether the recommendation held when it was last checked."""
    tone, sign = _SIGNS[verified.answer]
    title = f"Checked on {day(verified.now.run.started_at)}"
    return Flag(tone=tone, sign=sign, title=title, detail=tune.verification_text(verified))


def _address(result: TuneResult) -> str:
    """The address of a race's page, from that of another one."""
    return f"../{tune_file(result.run, str(result.source.document['name']), result.tuning)}"


def _body(proof: ArtefactProof) -> str:
    """The text of a file without the comments on its origin, which the page has elsewhere."""
    lines = proof.artefact.text.splitlines(keepends=True)
    shebang = [line for line in lines[:1] if line.startswith("#!")]
    return "".join(
        [*shebang, *dropwhile(lambda line: line.startswith("# "), lines[len(shebang) :])]
    )


def _support(result: TuneResult) -> str:
    """The interval of the gain, and how sure the race is."""
    gain, default = (
        capital(tune.inconclusive_winner(result)),
        result.against(result.raced.default),
    )
    if result.advice == "change" and default is not None:
        gain = f"Against the default: {tune.how_compared(default, result)}."
    return " ".join(filter(None, (gain, next(iter(tune.certainty(result)), ""))))


def _tradeoff(result: TuneResult) -> Content | None:
    """The objective against CPU time, and what no other configuration beats in both, best first.

    That, the default and the recommended one have tags: (place from the left, from the top in per
    cent, its text, its kind).
    """
    known = [
        (key, result.summary(key).median_ns, result.summaries[key].cpu_median_ns)
        for key in result.ranked
    ]
    points = [(key, value, cpu) for key, value, cpu in known if value and cpu]
    if len(points) < 2:
        return None
    front = [
        (key, value, cpu)
        for key, value, cpu in points
        if not any(
            other <= value and other_cpu <= cpu and (other, other_cpu) != (value, cpu)
            for _, other, other_cpu in points
        )
    ]
    called, cells = tune.names(result), result.cells
    values, cpus = [value for _, value, _ in points], [cpu for _, _, cpu in points]
    across, up = (linear_or_log_axis(min(of) / 1.1, max(of) * 1.1) for of in (cpus, values))
    best = ", ".join(capital(called[key]) for key, _, _ in front)
    numbers = {key: str(number) for number, (key, *_) in enumerate(front, start=1)}
    recommended = result.recommended.key if result.recommended is not None else None
    roles = {result.raced.default: "default", recommended: "recommended"}
    if recommended == result.raced.default:
        roles[recommended] = "default, recommended"
    return Content(
        chart=CurveChart(
            curves=tuple(
                Curve(label=label(cells[key]), dash=0, points=(CurvePoint(x=cpu, y=value),))
                for key, value, cpu in points
            ),
            across=across,
            up=up,
            texts=(duration, duration),
            alt_text=f"{count(len(points), 'configuration')}; the Pareto front: {best}",
        ),
        tags=tuple(
            (
                round(across.clipped(cpu) * 100, 1),
                round((1 - up.clipped(value)) * 100, 1),
                " ".join(filter(None, (numbers.get(key), roles.get(key)))),
                roles.get(key, "").rpartition(" ")[2],
            )
            for key, value, cpu in points
            if key in numbers or key in roles
        ),
        front=tuple(
            (mode_class(cells[key].binding.mode), capital(called[key])) for key, *_ in front
        ),
    )


def _changes(result: TuneResult) -> tuple[Fact, ...]:
    """What a recommendation depends on, with its present value."""
    run = result.run
    allowed = len(run.host.topology.allowed)
    locks = [
        f"{lock.name}: Python {lock.python}, {count(len(lock.packages), 'package')}"
        for lock in run.environments
    ]
    return (
        Fact(term="CPUs or NUMA nodes", value=f"{count(allowed, 'CPU')} allowed"),
        Fact(term="Kernel", value=run.host.kernel),
        Fact(term="Framework", value="; ".join(locks) or "none"),
    )
