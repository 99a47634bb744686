"""A missing optional package is a fault of this host: exit code 3, and how to install it."""

import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from corebound.api.plot import comparisons_figure
from corebound.errors import HostError
from corebound.exchange.openmetrics import openmetrics
from corebound.exchange.run_export import as_parquet
from corebound.fleet.engines import open_engine
from corebound.fleet.file import FleetFile
from support.paths import ROOT


def _engine(name: str) -> Callable[[], object]:
    fleet = FleetFile.model_validate(
        {"schema": 1, "name": "f", "engine": name, "hosts": ["a"], "scenarios": ["s.yaml"]},
        strict=False,
    )
    return lambda: open_engine(fleet, ["a"], Path())


# Each extra with a module that needs it. The GPU's and the image of link previews are left out
# silently: without them a value is unknown and a link has no image.
USES: Mapping[str, tuple[str, Callable[[], object]]] = {
    "plot": ("matplotlib.figure", lambda: comparisons_figure(())),
    "parquet": ("pyarrow", lambda: as_parquet((), "out")),
    "openmetrics": ("prometheus_client", lambda: openmetrics(())),
    "fleet-dask": ("distributed", _engine("dask")),
    "fleet-slurm": ("submitit", _engine("slurm")),
}


@pytest.mark.parametrize("extra", USES)
def test_a_missing_package_is_named_with_exit_code_3(
    monkeypatch: pytest.MonkeyPatch, extra: str
) -> None:
    module, use = USES[extra]
    monkeypatch.setitem(sys.modules, module, None)
    for loaded in [name for name in sys.modules if name.startswith("corebound.fleet.engines.")]:
        monkeypatch.delitem(sys.modules, loaded)

    with pytest.raises(HostError) as refused:
        use()

    assert refused.value.exit_code == 3
    assert "pip install" in refused.value.fix


def test_every_extra_is_tried_here() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert USES.keys() | {"gpu", "share", "dev"} == project["optional-dependencies"].keys()
