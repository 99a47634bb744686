"""CPU affinity and CPU time: where threads may run, where they ran, and why they waited."""

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.launch_facts import (
    LaunchFact,
    counter_facts,
    cpu_of,
    host_state,
    migration_facts,
)
from corebound.analysis.launch_metrics import median_of, migrations
from corebound.analysis.scenario_result import (
    CellResult,
    ScenarioResult,
    TypicalLaunch,
    typical_launch,
)
from corebound.analysis.server_workers import worker_activity
from corebound.analysis.wording import and_more, binding_name, capital, count, full_name
from corebound.diagnosis.evidence import remote_share, spin_share, threads_of, total, wait_share
from corebound.machine.topology import Cpu, CpuId, cpu_list
from corebound.planning.models import Placement
from corebound.records.launch_record import Launch, Stay, ThreadEvidence, Worker
from corebound.records.telemetry import sum_known
from corebound.records.thread_use import proof
from corebound.report.charts.axis import Tick, horizontal_ticks, linear_axis, plain_tick
from corebound.report.charts.cpu_time import INKS, CpuStay, CpuTime, Track
from corebound.report.charts.requests import REQUEST_INK
from corebound.report.elements import Content
from corebound.report.scenario.gpus import GpuOverTime, gpu_over_time
from corebound.report.scenario.requests import RequestsInFlight, requests_in_flight
from corebound.units import duration, percent, significant

# With more rows than this, not every row has room for a label.
_MAX_LABELS = 16
# The CPUs in the table of where a thread was; the records have all.
_MOST_SHARES = 8


def _cpu_labels(cpus: Sequence[Cpu]) -> tuple[Tick, ...]:
    """A label for each CPU, or for every n-th if there are many."""
    step = -(-len(cpus) // _MAX_LABELS)
    return tuple(
        Tick(at=(row + 0.5) / len(cpus) * 100, text=f"CPU {cpu.id}")
        for row, cpu in enumerate(cpus)
        if row % step == 0
    )


def _node_labels(cpus: Sequence[Cpu]) -> tuple[Tick, ...]:
    """A label in the middle of each node, if there are several."""
    nodes = {cpu.node for cpu in cpus}
    if len(nodes) < 2:
        return ()
    rows = {node: [row for row, cpu in enumerate(cpus) if cpu.node == node] for node in nodes}
    return tuple(
        Tick(at=(statistics.fmean(node_rows) + 0.5) / len(cpus) * 100, text=f"node {node}")
        for node, node_rows in sorted(rows.items(), key=lambda pair: pair[1])
    )


def cpu_shares(
    tracks: Sequence[tuple[str, Sequence[Stay]]],
) -> tuple[tuple[str, str], ...]:
    """The picture as a table: for each thread the CPUs it was seen on, the most time first.

    Args:
        tracks: (name, CPUs over time) of each thread.

    Returns:
        (name, CPUs with their share of the time in which the thread was seen) of each.
    """
    rows = []
    for name, stays in tracks:
        by_cpu_ms: dict[int, int] = {}
        for stay in stays:
            if stay.to_ms > max(stay.from_ms, 0):
                by_cpu_ms[stay.cpu] = by_cpu_ms.get(stay.cpu, 0) + stay.to_ms - max(stay.from_ms, 0)
        total_ms = sum(by_cpu_ms.values())
        ranked = sorted(by_cpu_ms.items(), key=lambda pair: (-pair[1], pair[0]))
        shares = [f"CPU {cpu} {percent(ms / total_ms, 0)}" for cpu, ms in ranked[:_MOST_SHARES]]
        more = and_more(len(ranked) - _MOST_SHARES)
        rows.append((name, f"{', '.join(shares)} {more}".strip()))
    return tuple(rows)


def _unmoved_text(rows: Sequence[tuple[str, str]], noun: str) -> str:
    """Summarise the result of `cpu_shares`: `3 of 4 threads stayed on one CPU`."""
    active = [cpus for _, cpus in rows if cpus]
    unmoved = sum("," not in cpus for cpus in active)
    return f"{unmoved} of {count(len(active), noun, _NOUNS[noun])} stayed on one CPU"


# More threads are shown as one, or by process.
_MOST_THREADS = 32
# A process with a smaller share of the CPU time is no reason to show processes.
_LEAST_PROCESS = 0.01
# The height of CPUs and of those that wait, in pixels.
_CPU_PX, _LEAST_CPUS_PX, _MOST_CPUS_PX, _MOST_QUEUE_PX = 14, 56, 240, 220
# Less is not visible: of a launch's CPUs, and of the threads that were ready.
_LEAST_STOLEN, _LEAST_WAITING = 0.005, 0.01
# A launch that ends before this share of the time scale has room for text beside it.
_EARLY = 0.5
# With fewer samples a strip shows single moments, not where a thread stayed.
_MIN_SAMPLES = 5


class _Subject(Struct, frozen=True, kw_only=True):
    """A thread, or a process or worker with its threads, and where these were seen."""

    name: str
    threads: tuple[tuple[ThreadEvidence, tuple[Stay, ...]], ...]

    @property
    def stays(self) -> tuple[Stay, ...]:
        return tuple(stay for _, stays in self.threads for stay in stays)


class _Shown(Struct, frozen=True, kw_only=True):
    """A launch and its subjects; times are those without its pauses."""

    cell: CellResult
    launch: Launch
    noun: str
    subjects: tuple[_Subject, ...]
    end_ms: int
    requests: RequestsInFlight | None
    gpus: GpuOverTime | None

    @property
    def run_ns(self) -> int:
        return self._total(thread.run_ns for thread in self._threads)

    @property
    def wait_ns(self) -> int:
        return self._total(thread.wait_ns for thread in self._threads)

    @property
    def _threads(self) -> Iterator[ThreadEvidence]:
        return (thread for subject in self.subjects for thread, _ in subject.threads)

    def _total(self, values: Iterable[int | None]) -> int:
        return sum_known(values) or 0


_NOUNS = {"thread": "threads", "process": "processes", "worker": "workers"}


def thread_activity(result: ScenarioResult, typical: Sequence[TypicalLaunch]) -> Content | None:
    """CPU × time of a pair of launches; None if no thread of them was seen on a CPU.

    Args:
        typical: The launches of the most interesting cells; the first is the baseline's. Where
            none is clearly faster, a much slower one is shown beside it.
    """
    pair = typical[:2] if result.winner else (*typical[:1], *typical[1:][-1:])
    shown = [found for each in pair if (found := _shown(each.cell, each.launch)) is not None]
    cpus = _used_cpus(result, [each.launch for each in shown])
    if not cpus:
        return None
    noun = shown[0].noun
    drawn = _drawn(shown, cpus)
    most = max(len(each.subjects) for each in shown)
    names = [f"{noun} {ink}" for ink in range(min(most, INKS))]
    if most == 1 and len(shown[0].subjects[0].threads) > 1:
        names = [f"any {noun}" if noun == "thread" else names[0]]
    # (class of its colour, name) of each, and of what kept them from running.
    key = [(f"h{ink}", name) for ink, name in enumerate(names)]
    if most > INKS:
        key[-1] = (key[-1][0], f"{key[-1][1]}; colours repeat")
    if any(each.per_waiting for each in drawn):
        key.append(("wait h0", "waits for a CPU"))
    if any(each.per_waiting and each.throttled for each in drawn):
        key.append(("throttled", "held back by the CPU quota"))
    if any(each.stolen for each in drawn):
        key.append(("stolen", "stolen by the hypervisor"))
    if any(each.gpus for each in shown):
        key.append((f"h{REQUEST_INK}", "GPU busy"))
    for each in [each.requests for each in shown if each.requests][:1]:
        key += each.key
    return Content(
        noun=noun,
        nouns=_NOUNS[noun],
        lead=_activity_lead([each.cell for each in shown], result, _NOUNS[noun]),
        key=tuple(key),
        panels=tuple(
            _panel(result, each, picture, cpus) for each, picture in zip(shown, drawn, strict=True)
        ),
        host_and_counters=_side_by_side([_host_and_counters(each.launch) for each in shown]),
    )


def _cpus_px(cpus: Sequence[Cpu]) -> int:
    return max(_LEAST_CPUS_PX, min(_MOST_CPUS_PX, len(cpus) * _CPU_PX))


def _shown(cell: CellResult, launch: Launch) -> _Shown | None:
    """A launch and those that ran after timing began; None if none was seen."""
    requests = requests_in_flight(launch)
    periods = _periods(launch) if requests is None else (requests.window_ms,)
    seen = [
        (worker, thread if requests is None else _within_stays(thread, stays), stays)
        for worker in launch.workers
        for thread in worker.threads
        if (stays := _in_periods(thread.stays, periods))
    ]
    if not seen:
        return None
    noun, names = _names(launch, [(worker, thread) for worker, thread, _ in seen])
    threads: dict[str, list[tuple[ThreadEvidence, tuple[Stay, ...]]]] = {}
    for name, (_, thread, stays) in sorted(
        zip(names, seen, strict=True), key=lambda pair: -(pair[1][1].run_ns or 0)
    ):
        threads.setdefault(name, []).append((thread, stays))
    order = threads if noun == "thread" else dict.fromkeys(names)
    return _Shown(
        cell=cell,
        launch=launch,
        noun=noun,
        subjects=tuple(_Subject(name=name, threads=tuple(threads[name])) for name in order),
        end_ms=sum(end - begin for begin, end in periods),
        requests=requests,
        gpus=gpu_over_time(launch),
    )


def _within_stays(thread: ThreadEvidence, stays: Sequence[Stay]) -> ThreadEvidence:
    """A thread with its part of CPU time and waiting, which are known in total only."""
    whole_ms = sum(stay.to_ms - max(stay.from_ms, 0) for stay in thread.stays if stay.to_ms > 0)
    part = sum(stay.to_ms - stay.from_ms for stay in stays) / whole_ms
    return replace(
        thread,
        run_ns=None if thread.run_ns is None else round(thread.run_ns * part),
        wait_ns=None if thread.wait_ns is None else round(thread.wait_ns * part),
    )


def _names(launch: Launch, seen: Sequence[tuple[Worker, ThreadEvidence]]) -> tuple[str, list[str]]:
    """What is shown of a launch, and the name of that for each thread that was seen."""
    if launch.served is not None:
        return "worker", [f"worker {worker.slot}" for worker, _ in seen]
    keys = [(worker.slot, thread.pid) for worker, thread in seen]
    run_ns = dict.fromkeys(keys, 0)
    for key, (_, thread) in zip(keys, seen, strict=True):
        run_ns[key] += thread.run_ns or 0
    least_ns = _LEAST_PROCESS * sum(run_ns.values())
    if sum(used_ns > least_ns for used_ns in run_ns.values()) > 1:
        numbers = {key: number for number, key in enumerate(sorted(run_ns))}
        return "process", [f"process {numbers[key]}" for key in keys]
    if len(seen) > _MOST_THREADS:
        return "thread", [f"{len(seen):,} threads"] * len(seen)
    ranked = sorted(seen, key=lambda pair: (-(pair[1].run_ns or 0), pair[1].tid))
    number_of = {id(thread): number for number, (_, thread) in enumerate(ranked)}
    return "thread", [f"thread {number_of[id(thread)]}: {thread.name}" for _, thread in seen]


def _periods(launch: Launch) -> tuple[tuple[int, int], ...]:
    """When a launch ran, in milliseconds since its start signal: without its pauses."""
    ends = [
        stay.to_ms
        for worker in launch.workers
        for thread in worker.threads
        for stay in thread.stays
    ]
    slices = sorted(time_slice for worker in launch.workers for time_slice in _slices(worker))
    if not launch.alternated or not slices:
        return ((0, max([*ends, 1])),)
    merged = [slices[0]]
    for begin, end in slices[1:]:
        if begin > merged[-1][1]:
            merged.append((begin, end))
        else:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
    return tuple(merged)


def _slices(worker: Worker) -> Iterator[tuple[int, int]]:
    """When a worker that alternated ran, in milliseconds since its start signal."""
    ends = accumulate((time_slice.iterations for time_slice in worker.time_slices), initial=1)
    for time_slice, first in zip(worker.time_slices, ends, strict=False):
        time_ns = sum(worker.wall_ns[first : first + time_slice.iterations])
        yield time_slice.began_us // 1000, -(-(time_slice.began_us * 1000 + time_ns) // 1_000_000)


def _in_periods(stays: Iterable[Stay], periods: Sequence[tuple[int, int]]) -> tuple[Stay, ...]:
    """Stays within these periods, as if nothing were between these."""
    found, before_ms = [], 0
    for begin, end in periods:
        found += [
            Stay(
                cpu=stay.cpu,
                from_ms=before_ms + max(stay.from_ms, begin) - begin,
                to_ms=before_ms + min(stay.to_ms, end) - begin,
            )
            for stay in stays
            if min(stay.to_ms, end) > max(stay.from_ms, begin)
        ]
        before_ms += end - begin
    return tuple(found)


def _drawn(shown: Sequence[_Shown], cpus: Sequence[Cpu]) -> tuple[CpuTime, ...]:
    """The pictures of all launches, on one time scale and one scale of those that wait."""
    row_of = {cpu.id: row for row, cpu in enumerate(cpus)}
    longest_ms = max(each.end_ms for each in shown)
    breaks = range(1, len(cpus))
    drawn = [
        CpuTime(
            cpus=len(cpus),
            tracks=tuple(_tracks(each, row_of)),
            stolen=tuple(_stolen(each, row_of)),
            throttled=_throttled(each),
            until=each.end_ms / longest_ms,
            cores=tuple(row for row in breaks if cpus[row].core != cpus[row - 1].core),
            nodes=tuple(row for row in breaks if cpus[row].node != cpus[row - 1].node),
            alt_text=_alt_text(each),
        )
        for each in shown
    ]
    waits = [each.wait_ns >= _LEAST_WAITING * (each.run_ns + each.wait_ns) for each in shown]
    most = max(
        (each.most_waiting for each, is_seen in zip(drawn, waits, strict=True) if is_seen),
        default=0.0,
    )
    if not most:
        return tuple(drawn)
    cpus_px = _cpus_px(cpus)
    per_waiting = min(1 / len(cpus), _MOST_QUEUE_PX / cpus_px / most)
    return tuple(
        replace(each, per_waiting=per_waiting if is_seen else 0.0)
        for each, is_seen in zip(drawn, waits, strict=True)
    )


def _tracks(shown: _Shown, row_of: Mapping[CpuId, int]) -> Iterator[Track]:
    for number, subject in enumerate(shown.subjects):
        for thread, stays in subject.threads:
            seen_ns = sum(stay.to_ms - stay.from_ms for stay in stays) * 1e6
            yield Track(
                ink=number % INKS,
                name=subject.name,
                stays=_in_picture(stays, row_of, shown),
                share=1.0 if thread.run_ns is None else thread.run_ns / seen_ns,
                waiting=(thread.wait_ns or 0) / seen_ns,
            )


def _in_picture(
    stays: Iterable[Stay], row_of: Mapping[CpuId, int], shown: _Shown
) -> tuple[CpuStay, ...]:
    """The stays on CPUs that have a row, with times as shares of the width."""
    return tuple(
        CpuStay(
            cpu=row_of[stay.cpu],
            begin=stay.from_ms / shown.end_ms,
            end=stay.to_ms / shown.end_ms,
        )
        for stay in stays
        if stay.cpu in row_of
    )


def _stolen(shown: _Shown, row_of: Mapping[CpuId, int]) -> Iterator[Track]:
    """What the hypervisor took, in each window of the launch evenly from its CPUs."""
    host, periods = shown.launch.host, _periods(shown.launch)
    if host is None or (host.share("steal_ns", cpus=len(host.cpus)) or 0) < _LEAST_STOLEN:
        return
    for window in host.windows:
        length_ns = (window.to_ms - window.from_ms) * 1e6 * len(host.cpus)
        if not window.steal_ns or not length_ns:
            continue
        stays = _in_periods(
            [Stay(cpu=cpu, from_ms=window.from_ms, to_ms=window.to_ms) for cpu in host.cpus],
            periods,
        )
        yield Track(
            ink=0,
            name="",
            stays=_in_picture(stays, row_of, shown),
            share=window.steal_ns / length_ns,
        )


def _throttled(shown: _Shown) -> float:
    """The share of the waiting during which a CPU quota held the threads back."""
    quota = shown.launch.quota
    throttled_ns = 0 if quota is None else quota.throttled_ns or 0
    wait_ns = sum_known(
        thread.wait_ns for worker in shown.launch.workers for thread in worker.threads
    )
    return min(1.0, throttled_ns / wait_ns) if wait_ns else 0.0


def _activity_lead(cells: Sequence[CellResult], result: ScenarioResult, noun: str) -> str:
    """The lead; it names a cause only if the records show it and a cell is clearly faster."""
    shown = f"Where the {noun} ran, in the launch nearest to each configuration's median."
    winner = result.winner
    if winner is None or len(cells) < 2:
        return shown
    baseline, winning = winner.baseline, winner.cell
    name = binding_name(baseline.cell)
    moves, winner_moves = median_of(baseline, migrations), median_of(winning, migrations)
    if moves is not None and winner_moves is not None and moves >= max(10, 3 * winner_moves):
        return f"{capital(name)} threads keep moving."
    waiting, winner_waiting = (
        wait_share(typical.launch) if (typical := typical_launch(cell)) else None
        for cell in (baseline, winning)
    )
    if waiting is not None and winner_waiting is not None and waiting - winner_waiting >= 0.1:
        return f"{capital(name)} threads wait for a CPU."
    return shown


def _seen_text(shown: _Shown) -> str:
    """The samples and threads of a launch, and how many threads the diagnosis counts."""
    launch, threads = shown.launch, sum(len(subject.threads) for subject in shown.subjects)
    text = count(launch.looks, "sample")
    if launch.looks < _MIN_SAMPLES:
        # With only a few, neither moves nor their absence can be seen.
        text += ": too short to detect migrations"
    pools = [number for worker in launch.workers if (number := threads_of(worker)) is not None]
    if launch.served is not None or sum(pools) in {0, threads}:
        return text
    return f"{text}, {count(threads, 'thread')} seen, {count(sum(pools), 'compute thread')}"


def _done_text(shown: _Shown) -> str:
    """What a launch did in which time: `30 iterations in 2.4 s`."""
    took = duration(shown.end_ms * 1e6)
    if shown.requests is not None:
        return shown.requests.done
    if shown.launch.served is not None:
        return f"{count(shown.launch.served.answered.ok, 'request')} answered in {took}"
    iterations = [len(worker.wall_ns) - 1 for worker in shown.launch.workers]
    if min(iterations, default=0) < 1:
        return f"in {took}"
    least = min(iterations)
    each = f" of each of {len(iterations)} processes" if len(iterations) > 1 else ""
    or_more = " or more" if max(iterations) > least else ""
    return f"{count(least, 'iteration')}{or_more}{each} in {took}"


def _used_cpus(result: ScenarioResult, launches: Sequence[Launch]) -> tuple[Cpu, ...]:
    """The CPUs any shown launch was given or seen on, cores and nodes together."""
    numbers = {
        stay.cpu
        for launch in launches
        for worker in launch.workers
        for thread in worker.threads
        for stay in thread.stays
    }
    for launch in launches:
        if launch.placement is not None:
            numbers.update(cpu for slot in launch.placement.slots for cpu in slot.cpus)
    cpus = [cpu for cpu in result.run.host.topology.cpus if cpu.id in numbers]
    return tuple(
        sorted(cpus, key=lambda cpu: (-1 if cpu.node is None else cpu.node, cpu.core, cpu.id))
    )


def _alt_text(shown: _Shown) -> str:
    text = f"CPU by time, {full_name(shown.cell.cell)}"
    for fact in _used_and_waiting(shown):
        text += f", {fact.value} {fact.says}"
    shares = cpu_shares([(subject.name, subject.stays) for subject in shown.subjects])
    return f"{text}; {_unmoved_text(shares, shown.noun)}"


def _used_and_waiting(shown: _Shown) -> Iterator[LaunchFact]:
    length_ns = shown.end_ms * 1e6
    if shown.run_ns:
        yield LaunchFact(significant(shown.run_ns / length_ns), "CPUs in use, on average")
    if shown.wait_ns >= _LEAST_WAITING * (shown.run_ns + shown.wait_ns) and shown.wait_ns:
        waiting = significant(shown.wait_ns / length_ns)
        yield LaunchFact(waiting, "threads waiting for a CPU, on average")


def _panel(result: ScenarioResult, shown: _Shown, drawn: CpuTime, cpus: Sequence[Cpu]) -> Content:
    rows, cpus_px = [*_cpu_labels(cpus)], _cpus_px(cpus)
    whole = 1 + drawn.queue
    if drawn.queue * cpus_px >= _CPU_PX:
        waiting = significant(shown.wait_ns / shown.end_ms / 1e6)
        rows.append(Tick(at=100 + drawn.queue * 50, text=f"{waiting} wait"))
    done = _done_text(shown)
    name = full_name(shown.cell.cell)
    above = [
        *([shown.gpus.above(name, drawn.until, shown.end_ms)] if shown.gpus else []),
        *([shown.requests.above(name, drawn.until)] if shown.requests else []),
    ]
    facts = [fact for extra in (shown.gpus, shown.requests) if extra for fact in extra.facts]
    return Content(
        above=tuple(above),
        cell=shown.cell.cell,
        caption=f"{done}; launch {shown.launch.id}, {_seen_text(shown)}",
        drawn=drawn,
        height_px=round(cpus_px * whole),
        rows=_within(rows, whole),
        nodes=_within(_node_labels(cpus), whole),
        times=horizontal_ticks(
            linear_axis(0.0, shown.end_ms / drawn.until / 1000, most_ticks=4),
            lambda tick: f"{plain_tick(tick)} s",
        ),
        done=done if drawn.until < _EARLY else "",
        values=(
            *facts,
            *_used_and_waiting(shown),
            *_panel_values(result, shown.cell, shown.launch),
        ),
        workers=worker_activity(shown.cell, result.run.host) if shown.launch.served else None,
        cpu_shares=cpu_shares([(subject.name, subject.stays) for subject in shown.subjects]),
    )


def _within(ticks: Iterable[Tick], whole: float) -> tuple[Tick, ...]:
    """Labels of the CPUs, beside a drawing this many times as high."""
    return tuple(Tick(at=round(tick.at / whole, 2), text=tick.text) for tick in ticks)


def _panel_values(result: ScenarioResult, cell: CellResult, launch: Launch) -> Iterator[LaunchFact]:
    topology = result.run.host.topology
    if (moves := migrations(launch)) is not None:
        yield LaunchFact(f"{moves:,}", "migrations in this launch")
    yield from migration_facts(launch, topology)
    if (involuntary := total(launch, "involuntary")) is not None:
        yield LaunchFact(f"{involuntary:,}", "involuntary switches in this launch")
    if (waiting := wait_share(launch)) is not None:
        yield LaunchFact(percent(waiting, 0), "run-queue wait")
    remote = remote_share(launch, {cpu.id: cpu.node for cpu in topology.cpus})
    if launch.served is None and remote is not None:
        yield LaunchFact(percent(remote, 0), "of memory on another node")
    worker = launch.workers[0]
    if worker.threads_used is not None or worker.threads_asked is not None:
        text = "thread reported" if worker.threads_used == 1 else "threads reported"
        asked = worker.threads_asked
        requested = "default" if asked is None else f"{asked} requested, {proof(launch, worker)}"
        used = "–" if worker.threads_used is None else f"{worker.threads_used}"
        yield LaunchFact(used, f"{text} ({requested})")
    yield from cpu_of(cell)
    spin = spin_share(cell.summary, [other.summary for other in result.cells])
    if spin is not None:
        yield LaunchFact(f"≤ {percent(spin, 0)}", "of CPU time spent spinning")


def _host_and_counters(launch: Launch) -> tuple[LaunchFact, ...]:
    """Host values and hardware counters of a launch; those of a server are counted per worker."""
    return (*host_state(launch), *(counter_facts(launch) if launch.served is None else ()))


def _side_by_side(launches: Sequence[Sequence[LaunchFact]]) -> dict[str, tuple[str, ...]]:
    """For each value, in order of appearance, that of each launch; a dash if it has none."""
    by_name = [{value.says: value.value for value in values} for values in launches]
    names = dict.fromkeys(value.says for values in launches for value in values)
    return {name: tuple(values.get(name, "–") for values in by_name) for name in names}


def placed_cells(result: ScenarioResult) -> tuple[CellResult, ...]:
    """The best alternative and its baseline, as far as their placement was recorded."""
    best = result.leader
    cells = [best.cell, best.baseline] if best else [result.baseline]
    return tuple(cell for cell in cells if cell is not None and cell.placement is not None)


def affinity_cpus(placement: Placement) -> frozenset[CpuId]:
    """The CPUs that the threads of a configuration may use; none if they are unknown."""
    if placement.is_unknown:
        return frozenset()
    return frozenset(cpu for slot in placement.slots for cpu in slot.cpus)


def affinity_text(placement: Placement) -> str:
    """The CPUs of a configuration, per worker, and its threads."""
    workers = f", {count(len(placement.slots), 'worker')}" if len(placement.slots) > 1 else ""
    threads = "" if placement.threads is None else f", {count(placement.threads, 'thread')} each"
    return f"CPUs {_slots_text(placement)}{workers}{threads}"


def cpus_text(placement: Placement) -> str:
    """The CPUs of a configuration, per worker, and what is to be known of them."""
    notes = f". {' '.join(placement.notes)}" if placement.notes else ""
    return f"{_slots_text(placement)}{notes}"


def _slots_text(placement: Placement) -> str:
    if placement.is_unknown:
        return "unknown"
    return "; ".join(dict.fromkeys(cpu_list(slot.cpus) for slot in placement.slots))
