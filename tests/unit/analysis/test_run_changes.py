"""What else changed between two runs: told beside the values, and where nothing is comparable."""

from msgspec.structs import replace

from corebound.analysis.run_changes import changes_text, run_changes
from corebound.records.run_record import EnvironmentLock, Run
from support.build import a_run


def a_night(**changes: object) -> Run:
    run = a_run()
    host = replace(run.host, microcode="0x1", governors=("powersave",), **changes)
    return replace(run, host=host)


def a_lock(*packages: str, python: str = "3.11.2") -> EnvironmentLock:
    return EnvironmentLock(name="pytorch", sha256="", python=python, packages=packages)


def test_equal_runs_have_no_changes() -> None:
    assert run_changes(a_night(), a_night()) == ()
    assert changes_text(()) == ""


def test_kernel_microcode_governor_and_quota_are_named_with_both_values() -> None:
    before, after = a_night(), a_night(kernel="7.0")
    topology = replace(after.host.topology, cpu_quota=1.5)
    host = replace(after.host, microcode="0x2", governors=("performance",), topology=topology)

    changes = {each.name: each for each in run_changes(before, replace(after, host=host))}

    assert {*changes} == {"kernel", "microcode", "governor", "CPU quota"}
    assert changes["kernel"].after == "7.0"
    assert (changes["governor"].before, changes["governor"].after) == ("powersave", "performance")


def test_what_one_run_did_not_record_is_no_change() -> None:
    before = replace(a_night(), host=replace(a_night().host, microcode=None))

    assert run_changes(before, a_night()) == ()


def test_packages_are_named_with_their_versions() -> None:
    before = replace(a_night(), environments=(a_lock("torch==2.12.0", "old==1", "same==1"),))
    after = replace(a_night(), environments=(a_lock("torch==2.13.0", "new==1", "same==1"),))

    text = changes_text(run_changes(before, after))

    assert "torch in pytorch 2.12.0 → 2.13.0" in text
    assert "old in pytorch 1 → none" in text
    assert "new in pytorch none → 1" in text
    assert "same" not in text


def test_of_many_packages_the_first_are_named() -> None:
    before = replace(a_night(), environments=(a_lock(*(f"p{n:02}==1" for n in range(40))),))
    after = replace(a_night(), environments=(a_lock(*(f"p{n:02}==2" for n in range(40))),))

    text = changes_text(run_changes(before, after))

    assert "32 more" in text
    assert "p39" not in text
