"""Until a server may be measured: all its workers are ready, and its answer is right."""

from __future__ import annotations

import http.client
import json
import math

from corebound.serving.processes import ASK_EVERY_S, Processes
from corebound.serving.server import LOOPBACK, ServedModel, Server, ServerError, ServerWorker

# A worker that has had so many processes before all are ready will never be.
CRASHES = 3
# The first request of a model may compile it.
ANSWER_S = 120.0
# Pools of other sizes add in another order.
TOLERANCE = 1e-3


def await_workers(
    server: Server, processes: Processes, *, root: int, wanted: int
) -> tuple[ServerWorker, ...]:
    """Wait until a server says that so many workers are ready.

    Raises:
        ServerError: it has ended, or its workers end as often as they are started.
        LateError: the launch's time is over.
    """
    seen: dict[str, set[int]] = {}
    while True:
        workers = server.workers()
        if len(workers) == wanted and all(one.ready and one.pid is not None for one in workers):
            return workers
        for one in workers:
            if one.pid is not None:
                seen.setdefault(one.id, set()).add(one.pid)
        crashing = next((id_ for id_, pids in seen.items() if len(pids) >= CRASHES), None)
        if crashing is not None:
            what = f"worker {crashing} ended again each time that it was started."
        elif (code := processes.exit_code(root)) is not None:
            what = f"it ended with {code} before its workers were ready."
        else:
            processes.wait(ASK_EVERY_S)
            continue
        raise ServerError(
            what=what,
            where=server.distribution,
            mend="The launch's log holds what was said.",
        )


def require_right_answer(server: Server, model: ServedModel) -> None:
    """Ask once, before any timing counts.

    Raises:
        ServerError: the answer is not the one that the model gives.
    """
    expected = json.loads(model.expected.read_bytes())
    status, answer = _answer(server)
    if status != http.client.OK or not _agrees(answer, expected):
        raise ServerError(
            what=f"its answer is wrong: status {status}, {answer[:200]!r};"
            f" class {expected[0][0]} was expected.",
            where=server.distribution,
            mend="Timings of a wrong answer mean nothing: the launch's log may say more.",
        )


def _answer(server: Server) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(LOOPBACK, server.port, timeout=ANSWER_S)
    try:
        headers = {"Content-Type": server.content_type}
        connection.request("POST", server.path, body=server.body.read_bytes(), headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise ServerError(
            what=f"it gave no answer: {str(error) or type(error).__name__}.",
            where=server.distribution,
            mend="The launch's log holds what it said.",
        ) from error
    finally:
        connection.close()


def _agrees(answer: bytes, expected: list[list[float]]) -> bool:
    """Whether the likeliest class and its probability are as they should be."""
    try:
        (index, probability), *_ = json.loads(answer)
        likely = math.isclose(probability, expected[0][1], rel_tol=TOLERANCE)
    except (ValueError, TypeError):
        return False
    return bool(index == expected[0][0] and likely)
