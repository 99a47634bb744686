"""ApacheBench's words and figures, from a real run of version 2.3 against a server that
answers every fourth request with a 503."""

from pathlib import Path
from typing import Any

import pytest

from corebound.errors import LaunchError
from corebound.scenario.traffic import Answered, GeneratorOrder
from corebound.serving.generator import apache
from corebound.stats import latency
from support.build import a_traffic, an_order
from support.known import known
from support.paths import DATA

SAVED = DATA / "ab"
OUTPUT, PERCENTILES, TIMES = (
    (SAVED / name).read_text() for name in ("output.txt", "percentiles.csv", "times.tsv")
)


def the_order(**of_traffic: Any) -> GeneratorOrder:
    traffic = a_traffic(**{"client": "ab", "requests": 60, **of_traffic})
    return an_order(traffic=traffic, body_files=("x.jpg",), content_type="image/jpeg")


def read(
    output: str = OUTPUT, percentiles: str = PERCENTILES, times: str = TIMES, **of_traffic: Any
) -> Answered:
    return apache.answered(
        output, percentiles, times, order=the_order(**of_traffic), began_ns=7, cpu_ns=8, wall_ns=9
    )


def argv(order: GeneratorOrder, requests: int = 60) -> tuple[str, ...]:
    return apache.argv(order, requests=requests, percentiles="pct.csv", times="times.tsv")


def test_ab_is_started_as_the_study_started_it() -> None:
    assert " ".join(argv(the_order(timeout_s=300.0))) == (
        "ab -k -r -l -q -s 300 -c 4 -n 60 -p x.jpg -T image/jpeg -e pct.csv -g times.tsv "
        "http://127.0.0.1:8080/predictions/model"
    )


@pytest.mark.parametrize(
    ("method", "body_files", "words"),
    [
        ("GET", (), ()),
        ("DELETE", (), ("-m", "DELETE")),
        ("PUT", ("b",), ("-u", "b")),
        ("PATCH", ("b",), ("-p", "b", "-m", "PATCH")),
    ],
)
def test_a_method_and_a_body_are_said_as_ab_wants_them(
    method: str, body_files: tuple[str, ...], words: tuple[str, ...]
) -> None:
    order = an_order(traffic=a_traffic(client="ab"), method=method, body_files=body_files)

    between = argv(order)[11:-5]

    assert between == words


def test_headers_and_connections_are_said_as_ab_wants_them() -> None:
    order = an_order(traffic=a_traffic(client="ab"), headers={"A": "b"}, keeps_connections=False)

    words = argv(order)

    assert words[words.index("-H") + 1] == "A: b"
    assert "-k" not in words


FAILED = "Failed requests:        0"
WAYS = "Failed requests:        5\n   (Connect: 0, Receive: 3, Length: 0, Exceptions: 2)"
TWICE = "Failed requests:        9\n   (Connect: 0, Receive: 9, Length: 0, Exceptions: 0)"


def test_failed_requests_and_answers_that_are_no_2xx_are_errors_each_once() -> None:
    plain, ways = read(), read(OUTPUT.replace(FAILED, WAYS))
    all_bad = OUTPUT.replace("Non-2xx responses:      15", "Non-2xx responses:      60")
    twice, warm = read(all_bad.replace(FAILED, TWICE)), apache.warmed(OUTPUT, requests=60)

    # ab does not call a 503 failed.
    assert FAILED in OUTPUT
    assert (plain.ok, plain.errors) == (warm.ok, warm.errors) == (45, {"status": 15})
    assert ways.errors == {"receive": 3, "exception": 2, "status": 15}
    assert twice.ok + sum(twice.errors.values()) == 60


def test_the_percentiles_are_abs_own_as_far_as_ab_rounds() -> None:
    found = known(latency.percentiles(read().latencies))

    ours = dict(line.split(",") for line in PERCENTILES.splitlines()[1:])
    # Ranks differ by one at most; HDR histograms are good to a thousandth.
    for share, value_ns in ((50, found.p50_ns), (90, found.p90_ns)):
        near = [float(ours[str(at)]) for at in range(share - 2, share + 3)]
        assert min(near) * 0.999 - 0.001 <= value_ns / 1e6 <= max(near) * 1.001 + 0.002
    assert found.count == 60
    longest_ms = max(float(line.split("\t")[4]) for line in TIMES.splitlines()[1:])
    assert abs(found.max_ns / 1e6 - longest_ms) <= 0.5 + 0.001 * longest_ms


@pytest.mark.parametrize(
    "change",
    [
        {"output": ""},
        {"output": OUTPUT.replace("Time taken", "Time lost")},
        {"percentiles": "Percentage served,Time in ms\n0\n"},
        {"times": "starttime\tseconds\n"},
        {"times": TIMES.replace("\t", " ")},
        {"requests": 61},
    ],
)
def test_figures_that_are_not_as_they_always_were_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(LaunchError):
        read(**change)


def test_an_ab_that_gave_up_is_told_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "apr_pollset_poll: timeout\napr_socket_recv: Connection refused (111)\n"
    (tmp_path / "ab").write_text(f"#!/bin/sh\nprintf '{said}' >&2\nexit 111\n")
    (tmp_path / "ab").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(LaunchError, match=r"code 111 \(apr_socket_recv: Connection refused"):
        apache.measure(an_order(traffic=a_traffic(client="ab")))
