"""Cores are counted under the quotas of control groups, in trees of files like the kernel's."""

import os
from pathlib import Path

import pytest

from seraphim import machine
from seraphim.diagnostics import installation

V2 = "31 23 0:28 {top} /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"
V1 = "32 31 0:29 {top} /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct"
MEMORY = "33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"
DISK = "22 1 254:1 / / rw,relatime - ext4 /dev/sda1 rw"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


def write_processes_view(root: Path, mounts: list[str], groups: list[str]) -> None:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mountinfo").write_text("\n".join([DISK, *mounts]) + "\n")
    (root / "proc/self/cgroup").write_text("\n".join(groups) + "\n")


def limit(root: Path, folder: str, **files: str) -> None:
    path = root / "sys/fs/cgroup" / folder
    path.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (path / name.replace("__", ".")).write_text(f"{content}\n")


def test_the_smallest_quota_on_the_way_up_counts(root: Path) -> None:
    write_processes_view(root, [V2.format(top="/")], ["0::/kubepods/pod1/container"])
    limit(root, "kubepods", cpu__max="max 100000")
    limit(root, "kubepods/pod1", cpu__max="150000 100000")
    limit(root, "kubepods/pod1/container", cpu__max="400000 100000")
    limit(root, "kubepods/pod2", cpu__max="10000 100000")  # of others
    assert machine.cpu_quota(root) == 1.5


def test_a_container_that_sees_its_own_group_as_the_root_has_that_ones_quota(root: Path) -> None:
    write_processes_view(root, [V2.format(top="/")], ["0::/"])
    limit(root, "", cpu__max="200000 100000")
    assert machine.cpu_quota(root) == 2


@pytest.mark.parametrize("group", ["/docker/abc", "/docker/abc/inner"])
def test_quotas_of_version_1_are_found_where_the_containers_group_is_mounted(group: str, root: Path) -> None:
    memory = "4:memory:/docker/abc"
    write_processes_view(root, [V1.format(top="/docker/abc"), MEMORY], [memory, f"3:cpu,cpuacct:{group}", "0::/"])
    limit(root, "cpu,cpuacct", cpu__cfs_quota_us="250000", cpu__cfs_period_us="50000")
    limit(root, "cpu,cpuacct/inner", cpu__cfs_quota_us="-1", cpu__cfs_period_us="100000")
    limit(root, "memory", cpu__cfs_quota_us="1", cpu__cfs_period_us="100000")  # not for processors
    assert machine.cpu_quota(root) == 5


def test_both_versions_at_once_count(root: Path) -> None:
    unified = "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw"
    write_processes_view(root, [V1.format(top="/"), unified], ["3:cpu,cpuacct:/a", "0::/b"])
    limit(root, "cpu,cpuacct/a", cpu__cfs_quota_us="300000", cpu__cfs_period_us="100000")
    assert machine.cpu_quota(root) == 3
    limit(root, "unified/b", cpu__max="200000 100000")
    assert machine.cpu_quota(root) == 2


def test_a_group_outside_of_what_is_mounted_leaves_what_is_mounted(root: Path) -> None:
    write_processes_view(root, [V2.format(top="/docker/abc")], ["0::/system.slice/other"])
    limit(root, "", cpu__max="300000 100000")
    assert machine.cpu_quota(root) == 3


def test_a_path_with_a_space_is_found(root: Path) -> None:
    mount = r"31 23 0:28 / /sys/fs/cgroup/my\040groups rw - cgroup2 cgroup2 rw"
    write_processes_view(root, [mount], ["0::/"])
    limit(root, "my groups", cpu__max="100000 100000")
    assert machine.cpu_quota(root) == 1


def test_without_quotas_there_is_no_limit(root: Path) -> None:
    assert machine.cpu_quota(root) is None  # no Linux
    write_processes_view(root, [V2.format(top="/"), V1.format(top="/")], ["3:cpu,cpuacct:/a", "0::/a"])
    assert machine.cpu_quota(root) is None
    limit(root, "a", cpu__max="max 100000")
    limit(root, "cpu,cpuacct/a", cpu__cfs_quota_us="-1", cpu__cfs_period_us="100000")
    assert machine.cpu_quota(root) is None


@pytest.mark.parametrize(("quota", "cores"), [(None, 8), (0.2, 1), (1.0, 1), (1.5, 2), (8.0, 8), (64.0, 8)])
def test_cores_are_those_that_are_visible_and_within_the_quota(
    quota: float | None, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    monkeypatch.setattr(machine, "cpu_quota", lambda: quota)
    assert machine.count_cores() == cores


def test_the_doctor_reports_the_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "cpu_quota", lambda: None)
    assert installation.machine()["processor"].endswith(" cores may be used")
    monkeypatch.setattr(installation, "cpu_quota", lambda: 1.5)
    assert installation.machine()["processor"].endswith(" cores may be used; a container's quota is 1.5 processors")


@pytest.mark.parametrize(
    ("flags", "has"),
    [
        ("flags\t\t: fpu sse avx2 avx512f avx512_vnni", False),
        ("flags\t\t: fpu avx512f avx512_bf16 wbnoinvd", True),
        ("flags\t\t: fpu avx512f amx_bf16 amx_tile", True),
        ("Features\t: fp asimd i8mm bf16 dgh", True),
        ("Features\t: fp asimd asimdhp", False),
    ],
)
def test_bfloat16_is_found_among_the_processors_features(flags: str, has: bool, tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nmodel name\t: Some bf16-free name\n{flags}\n\n")
    assert machine.has_bfloat16(tmp_path / "cpuinfo") == has


def test_a_machine_that_does_not_tell_its_features_has_no_bfloat16(tmp_path: Path) -> None:
    assert not machine.has_bfloat16(tmp_path / "missing")
