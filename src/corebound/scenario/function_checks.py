"""Check from its source that a workload's function exists and accepts its parameters."""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import chain
from typing import Literal

from msgspec import Struct

from corebound.scenario.builtin_workloads import BUILT_IN
from corebound.scenario.cell import is_project
from corebound.scenario.fault_wording import closest, join_words, printable
from corebound.scenario.matrix import Point, Points, environment_name
from corebound.scenario.models import Scenario
from corebound.scenario.runtimes import ALIASES, FRAMEWORKS, Framework
from corebound.scenario.yaml_reader import Flaw, Path

Kind = Literal["function", "coroutine", "generator"]


class Function(Struct, frozen=True, kw_only=True):
    """The signature and kind of a function.

    Attributes:
        kind: `coroutine` for `async def`; `generator` if it has a `yield`, async or not.
        parameters: Its parameters, except the positional-only ones.
        required: The parameters in `parameters` that have no default.
        positional_only: Positional-only parameters without a default.
        accepts_any: Whether it has a `**parameters` argument.
    """

    kind: Kind
    parameters: tuple[str, ...]
    required: tuple[str, ...]
    positional_only: tuple[str, ...]
    accepts_any: bool


class Absent(Struct, frozen=True, kw_only=True):
    """The module has no function of that name; `names` lists the names that it does have."""

    names: tuple[str, ...]


class Broken(Struct, frozen=True, kw_only=True):
    """The module has a syntax error: its line and the parser's message."""

    line: int | None
    message: str


def find_function(source: bytes, name: str) -> Function | Absent | Broken | None:
    """Find a function in a module's source, without executing the module.

    Returns:
        None if the source alone is not enough: names created at run time, star imports,
        re-exports, decorators, classes with bases, several definitions.
    """
    tree = _parse(source)
    if not isinstance(tree, ast.Module):
        return tree
    return None if _is_dynamic(tree) or name.startswith("__") else _definition(tree, name)


def _parse(source: bytes) -> ast.Module | Broken | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except SyntaxError as error:
        return Broken(line=error.lineno, message=str(error.msg))
    except (ValueError, RecursionError, MemoryError):
        return None


def _definition(tree: ast.Module, name: str) -> Function | Absent | None:
    bindings = bindings_of(tree)
    if name not in bindings:
        return Absent(names=tuple(bound for bound in bindings if not bound.startswith("_")))
    (node, *others) = bindings[name]
    # Defined conditionally, more than once, or changed afterwards: the result is unknown.
    if others or node not in tree.body or _is_changed(tree, name):
        return None
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return None if node.decorator_list else signature_of(node)
    return _class(node) if isinstance(node, ast.ClassDef) else None


# Names that create or replace attributes of a module at run time.
_NAMESPACE_FUNCTIONS = frozenset(
    {"globals", "locals", "vars", "exec", "eval", "setattr", "delattr"}
)
_NAMESPACE_ATTRIBUTES = frozenset({"globals", "__dict__", "__setattr__", "__path__", "meta_path"})


def _is_dynamic(tree: ast.Module) -> bool:
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return any(_binds_at_run_time(node, called) for node in ast.walk(tree))


def _binds_at_run_time(node: ast.AST, called: set[int]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in _NAMESPACE_FUNCTIONS | {"__path__"}
    if isinstance(node, ast.Attribute):
        # `sys.modules`, but not a method call `modules()`, which neural networks have.
        is_modules = node.attr == "modules" and id(node) not in called
        return is_modules or node.attr in _NAMESPACE_ATTRIBUTES
    if isinstance(node, ast.ImportFrom):
        names = {alias.name for alias in node.names}
        return "*" in names or (node.module == "sys" and "modules" in names)
    return isinstance(node, ast.FunctionDef) and node.name == "__getattr__"


_Scope = (
    ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
    | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
)  # fmt: skip


def bindings_of(tree: ast.Module | ast.ClassDef) -> dict[str, list[ast.AST]]:
    """The nodes that bind each name of a scope, in file order."""
    nodes_by_name: dict[str, list[ast.AST]] = {}
    pending: list[ast.AST] = list(reversed(tree.body))
    while pending:
        node = pending.pop()
        for name in _bound_names(node):
            nodes_by_name.setdefault(name, []).append(node)
        if not isinstance(node, _Scope):
            pending += reversed(list(ast.iter_child_nodes(node)))
    for node in ast.walk(tree):
        # `global` and `:=` bind names of the module from within other scopes.
        if isinstance(node, ast.Global):
            for name in node.names:
                nodes_by_name.setdefault(name, []).append(node)
        elif isinstance(node, ast.NamedExpr):
            nodes_by_name.setdefault(node.target.id, []).append(node)
    return nodes_by_name


def _bound_names(node: ast.AST) -> Iterator[str]:
    """The names that a single statement or expression binds."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0]
    elif isinstance(node, ast.Name):
        if not isinstance(node.ctx, ast.Load):
            yield node.id
    elif isinstance(node, ast.MatchMapping):
        if node.rest:
            yield node.rest
    elif not isinstance(node, ast.alias) and isinstance(name := getattr(node, "name", None), str):
        yield name  # a definition, `except … as name`, a pattern


def _is_changed(tree: ast.Module, name: str) -> bool:
    """Whether the module sets an attribute of that name's object, as in `setup.__init__ = …`."""
    return any(
        isinstance(node, ast.Attribute)
        and not isinstance(node.ctx, ast.Load)
        and isinstance(node.value, ast.Name)
        and node.value.id == name
        for node in ast.walk(tree)
    )


def signature_of(node: ast.FunctionDef | ast.AsyncFunctionDef, *, skipped: int = 0) -> Function:
    """The signature of a function without its first `skipped` parameters (already bound)."""
    arguments = node.args
    ordered = [*arguments.posonlyargs, *arguments.args][skipped:]
    optional = len(arguments.defaults)
    required = {argument.arg for argument in (ordered[:-optional] if optional else ordered)}
    required |= {
        argument.arg
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    }
    positional = [argument.arg for argument in arguments.posonlyargs[skipped:]]
    named = [
        argument.arg
        for argument in (*ordered, *arguments.kwonlyargs)
        if argument.arg not in positional
    ]
    return Function(
        kind=_kind(node),
        parameters=tuple(named),
        required=tuple(name for name in named if name in required),
        positional_only=tuple(name for name in positional if name in required),
        accepts_any=arguments.kwarg is not None,
    )


def _kind(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Kind:
    pending: list[ast.AST] = list(node.body)
    while pending:
        inner = pending.pop()
        if isinstance(inner, ast.Yield | ast.YieldFrom):
            return "generator"
        if not isinstance(inner, _Scope):
            pending += ast.iter_child_nodes(inner)
    return "coroutine" if isinstance(node, ast.AsyncFunctionDef) else "function"


def _class(node: ast.ClassDef) -> Function | None:
    """The constructor's signature; None if a base class or a decorator may change it."""
    bases = [base.id if isinstance(base, ast.Name) else None for base in node.bases]
    if node.decorator_list or node.keywords or bases not in ([], ["object"]):
        return None
    bindings = bindings_of(node)
    constructors = [*bindings.get("__init__", ()), *bindings.get("__new__", ())]
    if not constructors:
        return Function(
            kind="function", parameters=(), required=(), positional_only=(), accepts_any=False
        )
    (constructor, *others) = constructors
    if others or constructor not in node.body or "__new__" in bindings:
        return None
    if not isinstance(constructor, ast.FunctionDef) or constructor.decorator_list:
        return None
    return signature_of(constructor, skipped=1)


def check_function(
    scenario: Scenario, points: Points, find: ModuleFinder, invalid_keys: frozenset[str]
) -> Iterator[Flaw]:
    """Check the function that a scenario names, in each cell's environment.

    Args:
        scenario: The scenario; commands and built-in workloads are not checked.
        points: Its points under each profile.
        invalid_keys: Keys that are unknown because of other faults; checks that need them are
            skipped.
    """
    target = scenario.workload
    if not isinstance(target, str) or target in BUILT_IN or ":" not in target:
        return
    if invalid_keys & {"workload", "environment", "parameters", "commit", "env", "async"}:
        return
    if any(name.startswith("PYTHON") for name in scenario.env):
        return  # these variables change where Python finds modules
    module, _, name = target.partition(":")
    functions: dict[str, Function | None] = {}
    for point in chain.from_iterable(points.values()):
        environment = environment_name(point.settings["environment"])
        if environment not in functions:
            functions[environment] = None
            source = find(module, environment)
            if source is not None:
                functions[environment] = yield from _resolve(source, target, environment)
        if (signature := functions[environment]) is None:
            continue
        yield from _kind_flaws(signature, target, is_async=scenario.is_async)
        yield from _parameters(signature, name, point, _section(scenario))


# The modules by which a source shows its framework; NumPy only if it shows no other.
_FRAMEWORK_MODULES: dict[str, Framework] = {
    **{name.replace("-", ""): name for name in FRAMEWORKS[1:]},
    **ALIASES,
}
_MOST_IMPORTS_FOLLOWED = 3


def guess_framework(workload: str, environment: str, find: ModuleFinder) -> Framework | None:
    """The one framework that the module of a workload imports, itself or through its own modules.

    Args:
        workload: `module:function`.
        environment: The name of the environment in which the module is found.

    Returns:
        None if the module is not found, or imports no framework or several.
    """
    name = workload.partition(":")[0]
    imported = _imported(find(name, environment))
    frameworks = _frameworks(imported)
    if not frameworks:
        own = sorted(imported - sys.stdlib_module_names)[:_MOST_IMPORTS_FOLLOWED]
        frameworks = {
            framework
            for module in own
            for framework in _frameworks(_imported(find(module, environment)))
        }
    others = frameworks - {"numpy"} or frameworks
    return others.pop() if len(others) == 1 else None


def _frameworks(modules: Iterable[str]) -> set[Framework]:
    return {_FRAMEWORK_MODULES[module] for module in modules if module in _FRAMEWORK_MODULES}


def _imported(module: Module | None) -> frozenset[str]:
    """The first parts of the names of the modules that a module imports, anywhere in it."""
    tree = _parse(module.source) if module is not None and module.source is not None else None
    if not isinstance(tree, ast.Module):
        return frozenset()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return frozenset(names)


def _section(scenario: Scenario) -> Path:
    """The section where the scenario has its parameters, or where they would go."""
    if scenario.parameters:
        return ("parameters",)
    return ("matrix", "parameters") if scenario.matrix.parameters else ("workload",)


def _resolve(
    module: Module, target: str, environment: str
) -> Generator[Flaw, None, Function | None]:
    """Yield what is wrong with a module; return the function if its source is conclusive."""
    path: Path = ("workload",)
    name, _, function_name = target.partition(":")
    if module.missing is not None:
        yield from _missing(module, module.missing, environment)
        return None
    result = None if module.source is None else find_function(module.source, function_name)
    if isinstance(result, Broken):
        # asv may build the project under test for another Python version.
        if not is_project(environment):
            line = "" if result.line is None else f" in line {result.line}"
            what = f"`{printable(name)}` has a syntax error{line}: {printable(result.message)}."
            yield path, what, "Correct that module."
        return None
    if isinstance(result, Absent):
        close = closest(function_name, result.names)
        what = f"`{printable(name)}` has no function `{printable(function_name)}`."
        fix = "Name a function of that module that returns the step."
        yield path, what, f"Did you mean `{close}`?" if close else fix
        return None
    return result


def _missing(module: Module, missing: str, environment: str) -> Iterator[Flaw]:
    close = closest(missing, module.neighbours)
    package, _, part = missing.rpartition(".")
    if package:
        tree = _parse(module.source or b"")
        # A package may create its submodules when it is imported.
        if not isinstance(tree, ast.Module) or _is_dynamic(tree):
            return
        what = f"`{printable(package)}` has no module `{printable(part)}`."
    elif module.is_certain:
        what = f"no module `{missing}` is beside this file or in environment `{environment}`."
    elif close and not is_project(environment):
        what = f"no module `{missing}` is beside this file."
    else:
        return
    fix = "Put it beside this file, or add its package to the environment."
    yield ("workload",), what, f"Did you mean `{close}`?" if close else fix


def _kind_flaws(signature: Function, target: str, *, is_async: bool) -> Iterator[Flaw]:
    if signature.kind == "generator":
        what = f"`{target}` has a `yield`, so a call does not run it."
        yield ("workload",), what, "Return the step instead."
    elif signature.kind == "coroutine" and not is_async:
        what = f"`{target}` is `async def`, so a call does not run it."
        yield ("workload",), what, "Write `async: true` below `workload`, or make it a plain `def`."


def _parameters(signature: Function, name: str, point: Point, section: Path) -> Iterator[Flaw]:
    """Parameters that the function does not accept, and required ones that are missing."""
    parameters, gpus = point.parameters, point.settings["gpus"]
    if signature.positional_only:
        what = f"`{name}` takes `{signature.positional_only[0]}` by position only."
        yield ("workload",), what, "Remove the `/` from its definition."
    names = [*parameters, "gpus"] if gpus.value else [*parameters]
    unknown = [parameter for parameter in names if parameter not in signature.parameters]
    for parameter in () if signature.accepts_any else unknown:
        path = gpus.path if parameter == "gpus" else parameters[parameter].path
        close = closest(parameter, [fix for fix in signature.parameters if fix not in names])
        fix = (
            f"It takes {join_words(signature.parameters, 'and')}."
            if signature.parameters
            else "It takes none."
        )
        what = f"`{name}` has no parameter `{printable(parameter)}`."
        yield path, what, f"Did you mean `{close}`?" if close else fix
    for parameter in signature.required:
        # A misspelt parameter is reported above.
        if parameter not in names and closest(parameter, unknown) is None:
            what = f"`{name}` needs `{parameter}`, which has no default."
            yield section, what, f"Write `{parameter}:` among the parameters."


class Module(Struct, frozen=True, kw_only=True):
    """A module as the worker of a cell will import it.

    Attributes:
        source: The module's text; None if it is compiled or does not exist. If `missing` is
            part of a package, the text of the packages that contain it.
        missing: The part of the dotted name that was not found; None if all parts were found.
        is_certain: Whether a module that was not found certainly does not exist. False if the
            environment has not been made: the module may be in one of its packages.
        neighbours: Modules beside the scenario file, used to suggest a correction.
    """

    source: bytes | None
    missing: str | None = None
    is_certain: bool = True
    neighbours: tuple[str, ...] = ()


# Maps a module's dotted name and an environment's name to the module; None if unknown.
ModuleFinder = Callable[[str, str], Module | None]
