"""The generated Job, checked with the schemas of Kubernetes' own API; nothing is applied."""

import shutil
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from corebound.fleet.engines.kubernetes import job_manifest
from corebound.fleet.file import Kubernetes, Toleration
from fleet.conftest import write_fleet
from support.commands import corebound

SECTION = Kubernetes(
    image="registry.example/corebound:1",
    claim="bench",
    mount="/fleet",
    cpus=4,
    tolerations=(Toleration(key="dedicated", value="bench", effect="NoSchedule"),),
)


@pytest.mark.parametrize("version", ["1.29", "1.33"])
def test_the_job_is_valid_in_the_schema_of_kubernetes(version: str) -> None:
    manifest = job_manifest("corebound-a-1", ["n1", "n2"], Path("/fleet/lab/a"), SECTION)

    kubernetes_validate.validate(manifest, version, strict=True)


def test_the_schema_would_find_a_wrong_key() -> None:
    manifest = job_manifest("corebound-a-1", ["n1"], Path("/fleet/lab/a"), SECTION)
    manifest["spec"]["paralelism"] = 2

    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(manifest, "1.33", strict=True)


def test_pods_keep_apart_and_have_cpus_of_their_own() -> None:
    spec = job_manifest("j", ["n1", "n2"], Path("/fleet/lab/a"), SECTION)["spec"]
    pod = spec["template"]["spec"]
    (apart,) = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    resources = pod["containers"][0]["resources"]

    assert (spec["completions"], spec["parallelism"], spec["backoffLimitPerIndex"]) == (2, 2, 0)
    assert apart["labelSelector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    assert resources["requests"] == resources["limits"]


def test_without_kubectl_the_manifest_is_written_and_the_command_to_apply_it_printed(
    suite: Path, tmp_path: Path
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("env", "git"):
        (programs / name).symlink_to(shutil.which(name) or "")
    write_fleet(
        suite, engine="kubernetes", kubernetes={"image": "i", "claim": "c", "mount": str(suite)}
    )

    ran = corebound(suite, "fleet", "run", "fleet.yaml", PATH=str(programs))

    assert ran.code == 3
    (file,) = suite.glob("reports/fleet/lab/*/engine/job-1.yaml")
    assert f"kubectl apply --filename {file}" in ran.err
    kubernetes_validate.validate(yaml.safe_load(file.read_text()), "1.33", strict=True)


def test_the_plan_must_be_on_the_volume(suite: Path) -> None:
    write_fleet(
        suite, engine="kubernetes", kubernetes={"image": "i", "claim": "c", "mount": "/elsewhere"}
    )

    ran = corebound(suite, "fleet", "run", "fleet.yaml")

    assert ran.code == 2
    assert "not below /elsewhere" in ran.err
