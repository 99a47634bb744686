"""What of the traffic to a server does not go together."""

from __future__ import annotations

from collections.abc import Iterator

from corebound.model.catalogue import BUILT_IN
from corebound.model.scenario import Scenario
from corebound.planning.points import Setting
from corebound.planning.servers import TAKES
from corebound.planning.tree import Flaw


def traffic(found: dict[str, Setting], scenario: Scenario) -> Iterator[Flaw]:
    """What is wrong with the parameters of a point; nothing where it is no server's."""
    workload = scenario.workload
    built_in = BUILT_IN.get(workload) if isinstance(workload, str) else None
    if built_in is None or not built_in.serves:
        return
    shape = found["traffic"].text if "traffic" in found else "closed"
    for name, shapes in TAKES.items():
        given, path = found.get(name), ("parameters", name)
        if given is None and shape in shapes:
            what = f"`traffic: {shape}` needs `{name}`."
            yield ("parameters",), what, f"Write `{name}:` among the parameters."
        elif given is not None and shape not in shapes:
            what = f"`{name}` means nothing to `traffic: {shape}`."
            yield given.path or path, what, "Remove it, or take that cell out with `exclude`."
    client = found.get("client")
    if client is not None and client.value == "ab" and shape != "closed":
        what = f"`client: ab` cannot send `traffic: {shape}`."
        yield client.path, what, "Write `client: corebound`, or `traffic: closed`."
