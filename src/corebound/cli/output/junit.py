"""JUnit XML, which CI services show as test results."""

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from msgspec import Struct

from corebound.text import xml


class TestFailure(Struct, frozen=True, kw_only=True):
    """Why a test case did not pass: a failure or an error; `details` defaults to none."""

    type: str
    message: str
    details: str | None = None


class TestCase(Struct, frozen=True, kw_only=True):
    """One test case.

    Attributes:
        classname, name: Its name, in two parts.
        errors: Reasons why there is no result.
        output: Further text; empty is none.
    """

    classname: str
    name: str
    failure: TestFailure | None = None
    errors: tuple[TestFailure, ...] = ()
    output: str = ""


def junit_xml(name: str, cases: Sequence[TestCase], *, notes: Sequence[str] = ()) -> str:
    """Render a test suite.

    Args:
        notes: Values of properties named `noise`.
    """
    suite = ET.Element(
        "testsuite",
        name=name,
        tests=str(len(cases)),
        failures=str(sum(case.failure is not None for case in cases)),
        errors=str(sum(len(case.errors) for case in cases)),
        skipped="0",
    )
    if notes:
        properties = ET.SubElement(suite, "properties")
        for note in notes:
            ET.SubElement(properties, "property", name="noise", value=xml(note))
    for case in cases:
        element = ET.SubElement(
            suite, "testcase", classname=xml(case.classname), name=xml(case.name)
        )
        if case.failure is not None:
            _add(element, "failure", case.failure)
        for error in case.errors:
            _add(element, "error", error)
        if case.output:
            ET.SubElement(element, "system-out").text = xml(case.output)
    ET.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suite, encoding="unicode")


def _add(case: ET.Element, kind: str, why: TestFailure) -> None:
    element = ET.SubElement(case, kind, message=xml(why.message), type=why.type)
    if why.details is not None:
        element.text = xml(why.details)
