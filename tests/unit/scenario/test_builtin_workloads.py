"""What the catalogue says of the built-in workloads holds together, and the guide lists them."""

import re
from pathlib import Path

import pytest

from corebound.scenario.builtin_workloads import BUILT_IN, BuiltIn
from corebound.scenario.cell import framework_of
from corebound.scenario.runtimes import FRAMEWORKS
from support.paths import ROOT

every_built_in = pytest.mark.parametrize(
    ("name", "built_in"), BUILT_IN.items(), ids=lambda name: name if isinstance(name, str) else ""
)


# Paths, and the shapes of a user's own model.
ANY_TEXT = {"onnx-inference": {"model", "shapes"}, "decoder-inference": {"model"}}


@every_built_in
def test_each_text_and_no_other_has_choices_and_each_integer_a_minimum(
    name: str, built_in: BuiltIn
) -> None:
    for key, parameter in built_in.parameters.items():
        is_free = key in ANY_TEXT.get(name, set())
        assert bool(parameter.choices) == (parameter.kind is str and not is_free)
        assert (parameter.least is not None) == (parameter.kind is int)
        assert is_free or not parameter.is_path


@every_built_in
def test_each_target_is_in_a_module_named_after_its_framework(name: str, built_in: BuiltIn) -> None:
    assert set(built_in.targets) <= set(FRAMEWORKS)
    for framework, target in built_in.targets.items():
        module, _, function = target.partition(":")
        source = ROOT / "src" / Path(*module.split(".")).with_suffix(".py")
        assert source.stem.endswith(f"_{framework.replace('-', '_')}")
        # Several modules bind a function that their runtimes share.
        kind = "class" if built_in.serves and function[0].isupper() else "def"
        defined = rf"^({kind} {function}\(|{function} = )"
        assert re.search(defined, source.read_text(encoding="utf-8"), re.MULTILINE)


@every_built_in
def test_the_guide_lists_it_with_its_environments_parameters_and_choices(
    name: str, built_in: BuiltIn
) -> None:
    guide = (ROOT / "docs" / "reference" / "writing-scenarios.md").read_text(encoding="utf-8")

    (row,) = (line for line in guide.splitlines() if line.startswith(f"| `{name}` |"))

    _, environments, parameters = row.strip("| ").split(" | ")
    leading = {framework_of(environment) for environment in environments.split(", ")}
    assert leading == set(built_in.targets)
    for parameter_name in built_in.parameters:
        assert f"`{parameter_name}`" in parameters
    for parameter in built_in.parameters.values():
        assert ", ".join(parameter.choices) in parameters
