"""Kubernetes: an indexed Job with one pod on each node, applied where kubectl is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from corebound.errors import HostError, InputError
from corebound.fleet import agent
from corebound.fleet.engines import JobState, answer_of
from corebound.fleet.file import FleetFile, HostEntry, Kubernetes
from corebound.fleet.plan import Assignment
from corebound.machine.identity import MACHINE_ID_VARIABLE
from corebound.records import atomic_write

_JOB_LABEL = "corebound.fleet/job"
_HOSTNAME_LABEL = "kubernetes.io/hostname"
_KEEP_S = 7 * 24 * 3600


def connect(fleet: FleetFile, _hosts: Sequence[str], files: Path) -> KubernetesEngine:
    """Take the options of a fleet; nothing is connected before kubectl is needed."""
    if fleet.kubernetes is None:
        raise ValueError("a fleet of Kubernetes has options")  # `load_fleet` has checked it
    return KubernetesEngine(fleet.kubernetes, files)


def job_manifest(
    name: str, hosts: Sequence[str], plan: Path, section: Kubernetes
) -> dict[str, Any]:
    """The Job that carries out the shards of some nodes, one pod on each.

    An index is no node: the scheduler decides. The pods keep apart and may run on these nodes
    only, and each carries out the shards of the node that it is on.

    Args:
        plan: The folder of the plan, on the volume.
    """
    node_name = {"valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    # Equal requests and limits of whole CPUs: with the static CPU manager the pod has CPUs of
    # its own and no quota.
    resources = {"cpu": str(section.cpus), "memory": section.memory}
    labels = {_JOB_LABEL: name}
    container = {
        "name": "agent",
        "image": section.image,
        "command": ["corebound", "fleet", "agent", str(plan)],
        "env": [
            {"name": agent.HOST_VARIABLE, **node_name},
            # Containers have no machine id of their own.
            {"name": MACHINE_ID_VARIABLE, **node_name},
        ],
        "resources": {"requests": resources, "limits": resources},
        "volumeMounts": [{"name": "fleet", "mountPath": section.mount}],
    }
    expression = {"key": _HOSTNAME_LABEL, "operator": "In", "values": list(hosts)}
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [expression]}]
            }
        },
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": labels}, "topologyKey": _HOSTNAME_LABEL}
            ]
        },
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": section.namespace, "labels": labels},
        "spec": {
            "completionMode": "Indexed",
            "completions": len(hosts),
            "parallelism": len(hosts),
            # A pod is not replaced: `fleet resume` decides what is repeated, and where.
            "backoffLimitPerIndex": 0,
            "maxFailedIndexes": len(hosts),
            "ttlSecondsAfterFinished": _KEEP_S,
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "restartPolicy": "Never",
                    "affinity": affinity,
                    "tolerations": [
                        toleration.model_dump(exclude_none=True)
                        for toleration in section.tolerations
                    ],
                    "containers": [container],
                    "volumes": [
                        {
                            "name": "fleet",
                            "persistentVolumeClaim": {"claimName": section.claim},
                        }
                    ],
                },
            },
        },
    }


class KubernetesEngine:
    """Jobs, which kubectl applies, describes and deletes."""

    outlives_us = True
    one_at_a_time = False

    def __init__(self, section: Kubernetes, files: Path) -> None:
        """Take the options, and the folder for manifests, which is in the plan's folder."""
        self._section = section
        self._files = files

    def _kubectl(self, *arguments: str) -> str:
        """Run kubectl and return its output."""
        return answer_of(
            ("kubectl", "--namespace", self._section.namespace, *arguments),
            of="the cluster",
            missing="Run this command where kubectl is.",
            silent="Check `kubectl cluster-info`. Pods go on without us.",
        )

    def select(self, entry: HostEntry) -> Sequence[str]:
        """The nodes with some labels.

        Raises:
            HostError: There is none, or kubectl fails.
        """
        selector = ",".join(f"{name}={value}" for name, value in (entry.nodes or {}).items())
        output = self._kubectl("get", "nodes", "--selector", selector, "--output", "json")
        names = sorted(node["metadata"]["name"] for node in json.loads(output)["items"])
        if not names:
            raise HostError(
                what=f"no node has the labels {selector}.",
                where="kubectl get nodes",
                fix="Check `kubectl get nodes --show-labels`.",
            )
        return names[: entry.count]

    def absent(self, _hosts: Sequence[str]) -> Mapping[str, str]:
        """None: pods of a node that is away wait for it."""
        return {}

    def submit(
        self, assignments: Sequence[Assignment], *, again: bool
    ) -> Iterator[tuple[str, str]]:
        """Write a Job for the nodes of some shards, and apply it.

        Raises:
            InputError: The plan's folder is not on the volume.
            HostError: kubectl fails; the manifest remains.
        """
        del again  # an agent in a pod always resumes what has failed
        agent.forget_failures(assignments)
        files = self._files.absolute()
        plan = files.parent
        if not plan.is_relative_to(self._section.mount):
            raise InputError(
                what=f"the plan's folder is not below {self._section.mount}, where the pods have"
                " the volume.",
                where=str(plan),
                fix="Mount the volume there on this machine too, and plan with --folder on it.",
            )
        hosts = tuple(dict.fromkeys(task.host for task in assignments))
        number = len(list(files.glob("job-*.yaml"))) + 1
        name = f"corebound-{assignments[0].plan}-{number}"
        file = files / f"job-{number}.yaml"
        manifest = job_manifest(name, hosts, plan, self._section)
        atomic_write.put(file, yaml.safe_dump(manifest, sort_keys=False).encode())
        try:
            self._kubectl("apply", "--filename", str(file))
        except HostError as error:
            raise HostError(
                what=error.what, where=str(file), fix=f"`kubectl apply --filename {file}`."
            ) from error
        yield from ((task.shard, name) for task in assignments)

    def poll(self, jobs: Mapping[str, tuple[Assignment, str]]) -> Mapping[str, JobState]:
        """The state of shards: the agent's report, else what the Job says."""
        ended = {name: self._ended(name) for name in {job for _, job in jobs.values()}}
        answers = {}
        for shard, (task, job) in jobs.items():
            report = agent.report_of(task)
            if report is not None:
                answers[shard] = JobState(state="ended", report=report)
            elif ended[job] is None:
                answers[shard] = JobState(state="queued", reason=f"Job {job}")
            else:
                reason = f"Job {job} {ended[job]} without a report of {task.host}"
                answers[shard] = JobState(state="lost", reason=reason)
        return answers

    def _ended(self, name: str) -> str | None:
        """How a Job has ended; None while it is active."""
        output = self._kubectl("get", "job", name, "--ignore-not-found", "--output", "json")
        if not output.strip():
            return "was deleted"
        conditions = json.loads(output).get("status", {}).get("conditions", [])
        words = {"Complete": "completed", "Failed": "failed"}
        held = [condition["type"] for condition in conditions if condition.get("status") == "True"]
        return next((words[kind] for kind in held if kind in words), None)

    def cancel(self, jobs: Mapping[str, tuple[Assignment, str]]) -> None:
        """Delete the Jobs of shards."""
        for name in sorted({job for _, job in jobs.values()}):
            self._kubectl("delete", "job", name, "--ignore-not-found", "--wait=true")

    def close(self) -> None:
        """Nothing is open."""
