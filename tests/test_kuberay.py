"""The manifest for Kubernetes is what KubeRay and its pods take, and runs what there is."""

import configparser
import copy
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
CLAIM, CLUSTER, JOB = yaml.safe_load_all((ROOT / "docs" / "kuberay.yaml").read_text())
SCHEMA = yaml.safe_load((ROOT / "tests" / "data" / "raycluster-schema.yaml").read_text())


def check(cluster: dict[str, Any]) -> None:
    jsonschema.Draft7Validator(SCHEMA).validate(cluster)


def check_pod(template: dict[str, Any]) -> None:
    jsonschema.Draft7Validator({**SCHEMA["definitions"]["pod"]}).validate(template)


def containers() -> list[dict[str, Any]]:
    spec = CLUSTER["spec"]
    templates = [spec["headGroupSpec"]["template"], spec["workerGroupSpecs"][0]["template"], JOB["spec"]["template"]]
    return [container for template in templates for container in template["spec"]["containers"]]


def test_the_cluster_and_the_pod_of_the_job_are_what_their_schema_says() -> None:
    check(CLUSTER)
    check_pod(JOB["spec"]["template"])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.workerGroupSpecs.0.replicas", "ten"),
        ("spec.workerGroupSpecs.0.replica", 10),
        ("spec.headGroupSpec.rayStartParams.num-cpus", 0),
        ("spec.authOptions.mode", "tokens"),
        ("spec.headGroupSpec.template.spec.containers.0.resource", {}),
    ],
)
def test_a_slip_in_the_manifest_is_seen(path: str, value: object) -> None:
    slipped = copy.deepcopy(CLUSTER)
    *parents, last = path.split(".")
    place: Any = slipped
    for part in parents:
        place = place[int(part)] if isinstance(place, list) else place[part]
    place[last] = value
    with pytest.raises(jsonschema.ValidationError):
        check(slipped)


def test_names_within_the_manifest_fit_together() -> None:
    assert len({container["image"] for container in containers()}) == 1
    (learner,) = JOB["spec"]["template"]["spec"]["containers"]
    assert learner["args"][0].count(f"={CLUSTER['metadata']['name']}-head-svc:6379") == 2
    secrets = [each["valueFrom"]["secretKeyRef"] for each in learner["env"] if "valueFrom" in each]
    assert secrets == [{"name": CLUSTER["metadata"]["name"], "key": "auth_token"}]  # as KubeRay calls them
    (volume,) = JOB["spec"]["template"]["spec"]["volumes"]
    assert volume["persistentVolumeClaim"]["claimName"] == CLAIM["metadata"]["name"]
    player = CLUSTER["spec"]["workerGroupSpecs"][0]
    (container,) = player["template"]["spec"]["containers"]
    assert str(container["livenessProbe"]["tcpSocket"]["port"]) == player["rayStartParams"]["node-manager-port"]


def test_it_is_written_for_the_version_of_ray_that_is_installed_with_this() -> None:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    (requirement,) = map(Requirement, parser["options.extras_require"]["cluster"].split())
    assert requirement.name == "ray"
    assert requirement.specifier.contains(CLUSTER["spec"]["rayVersion"])
    assert f"\nray=={CLUSTER['spec']['rayVersion']}\n" in (ROOT / "constraints.txt").read_text()


def test_the_job_runs_a_program_that_there_is_with_flags_that_it_has() -> None:
    (learner,) = JOB["spec"]["template"]["spec"]["containers"]
    command = shlex.split(learner["args"][0].partition("exec ")[2])
    assert command[0] == "python"
    program = ROOT / Path(command[1]).relative_to("/seraphim")
    known = subprocess.run([sys.executable, str(program), "--help"], capture_output=True, text=True).stdout
    flags = [re.match(r"--(\w+)=", word) for word in command[3:]]
    assert all(flag and f"--{flag[1]}:" in known for flag in flags)
