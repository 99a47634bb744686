"""A project that cannot be opened costs the cells that measure it, and no others."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from corebound.asv_bridge import project as asv_project
from corebound.errors import CoreboundError, HostError, InputError, LaunchError
from corebound.scenario.cell import Cell
from corebound.workflow import projects
from corebound.workflow.projects import CONFIG, ProjectEnvironments
from support.build import a_cell

Opens = Callable[[Sequence[Cell], Path], ProjectEnvironments]
OPENS: tuple[Opens, ...] = (
    projects.find,
    lambda cells, config: projects.build(cells, config, lambda _line: None),
)
FAULTS = (
    InputError(what="no such file.", where="asv.conf.json", fix="Write it."),
    InputError(what="it is not JSON.", where="asv.conf.json", fix="Correct it."),
    HostError(what="git is not installed.", where="git", fix="Install it."),
    LaunchError(what="the clone failed.", where="git", fix="Try again."),
)


@pytest.fixture(params=FAULTS, ids=lambda fault: fault.what)
def fault(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> CoreboundError:
    error: CoreboundError = request.param

    def refuse(_file: Path, _notify: object) -> asv_project.Project:
        raise error

    monkeypatch.setattr(asv_project, "open_project", refuse)
    return error


@pytest.mark.parametrize("opens", OPENS)
@pytest.mark.parametrize("config", [CONFIG, CONFIG.absolute(), Path("./asv.conf.json")])
def test_a_project_that_nobody_named_costs_only_its_cells(
    fault: CoreboundError, opens: Opens, config: Path
) -> None:
    cells = [replace(a_cell(), environment="project@main"), replace(a_cell(), environment="host")]

    found = opens(cells, config)

    assert found.made == {"project@main": None}
    reason = found.unmade["project@main"]
    assert fault.what in reason.what
    assert fault.where in reason.what
    assert (reason.fix, reason.cause) == (fault.fix, "environment")


@pytest.mark.parametrize("opens", OPENS)
@pytest.mark.parametrize("config", ["mistyped.json", "elsewhere/asv.conf.json"])
def test_a_project_that_the_user_named_is_an_error(
    fault: CoreboundError, opens: Opens, config: str
) -> None:
    with pytest.raises(type(fault)):
        opens([replace(a_cell(), environment="project@main")], Path(config))


@pytest.mark.usefixtures("fault")
@pytest.mark.parametrize("opens", OPENS)
def test_without_cells_of_a_project_none_is_opened(opens: Opens) -> None:
    assert opens([replace(a_cell(), environment="host")], CONFIG).made == {}
