"""The files for containers name what is there, and fit each other and the guard.

No engine builds or starts anything here; these tests are what can be known without one.
"""

import ast
import json
import re
import shlex
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from hdguard.config import load_config
from hdguard.observe.dashboards.export import FILES
from hdguard.observe.settings import HttpSettings
from tests.e2e.stage import REPOSITORY

IMAGES = {
    "mosquitto": "docker.io/library/eclipse-mosquitto",
    "prometheus": "docker.io/prom/prometheus",
    "grafana": "docker.io/grafana/grafana",
}


def instructions() -> list[tuple[str, str]]:
    """Name and the rest of every instruction of the Containerfile, lines joined."""
    text = (REPOSITORY / "Containerfile").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    pairs = (line.split(None, 1) for line in joined.splitlines() if line.strip())
    return [(name, rest.strip()) for name, rest in pairs]


def of(name: str) -> list[str]:
    return [rest for each, rest in instructions() if each == name]


# The Containerfile.


def test_every_instruction_is_one() -> None:
    known = {"FROM", "ARG", "WORKDIR", "COPY", "RUN", "ENV", "VOLUME", "USER", "STOPSIGNAL"}
    assert {name for name, _ in instructions()} <= known | {"HEALTHCHECK", "ENTRYPOINT", "CMD"}
    assert instructions()[0][0] == "FROM"


def test_everything_that_is_copied_is_there_and_not_ignored() -> None:
    ignored = (REPOSITORY / ".dockerignore").read_text().splitlines()
    assert "*" in ignored
    for rest in of("COPY"):
        if rest.startswith("--from="):
            continue
        *sources, _ = rest.split()
        for source in sources:
            assert (REPOSITORY / source).exists(), source
            assert f"!{source}" in ignored, source


def test_everything_that_the_wheel_is_made_of_is_copied() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    named = [project["project"]["readme"], *project["project"]["license-files"]]
    copied = " ".join(rest for rest in of("COPY") if not rest.startswith("--from=")).split()
    assert {"pyproject.toml", *wheel, *named} <= set(copied)
    (extras,) = re.findall(r"EXTRAS=(\S+)", " ".join(of("ARG")))
    assert set(extras.split(",")) <= set(project["project"]["optional-dependencies"])
    assert "dev" not in extras


def test_the_dashboards_reach_the_image_with_the_package() -> None:
    assert FILES.is_relative_to(REPOSITORY / "hdguard")
    patterns = (REPOSITORY / ".gitignore").read_text().split()  # hatch leaves those out of a wheel
    for path in FILES.rglob("*"):
        parts = path.relative_to(REPOSITORY).parts
        assert not any(fnmatch(part, p.rstrip("/")) for part in parts for p in patterns), path


def test_it_runs_as_nobody_special_and_hears_sigterm_itself() -> None:
    assert len(of("FROM")) == 2
    assert of("USER") == ["hdguard"]
    assert of("STOPSIGNAL") == ["SIGTERM"]
    command = [*json.loads(of("ENTRYPOINT")[0]), *json.loads(of("CMD")[0])]  # no shell between
    assert command[:3] == ["hdguard", "run", "--config"]
    after_user = [name for name, _ in instructions()][-6:]
    assert "RUN" not in after_user
    assert "COPY" not in after_user


def test_its_health_is_whether_the_guard_answers(tmp_path: Path) -> None:
    (rest,) = of("HEALTHCHECK")
    code = json.loads(rest[rest.index("CMD") + 3 :])[2]
    ast.parse(code)
    assert f"http://{HttpSettings().host}:{HttpSettings().port}/livez" in code
    unused = code.replace(str(HttpSettings().port), "9")  # nobody listens on the discard port
    done = subprocess.run(
        [sys.executable, "-c", unused], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 1


def test_the_state_outlives_the_container_where_the_guard_looks_for_it() -> None:
    (folder,) = of("VOLUME")
    words = [shlex.split(rest) for rest in of("ENV")]
    assert f"STATE_DIRECTORY={folder}" in [word for each in words for word in each]


# The compose file.


@pytest.fixture(scope="module")
def compose() -> Any:
    return yaml.safe_load((REPOSITORY / "compose.yaml").read_text())


def test_it_has_only_keys_that_compose_knows(compose: Any) -> None:
    known = {
        *("build", "cap_drop", "command", "depends_on", "environment", "image", "init"),
        *("network_mode", "read_only", "restart", "security_opt", "shm_size"),
        *("stop_grace_period", "tmpfs", "volumes"),
    }
    assert set(compose) == {"name", "services", "volumes"}
    assert set(compose["services"]) == {"guard", *IMAGES}
    for name, service in compose["services"].items():
        assert set(service) <= known, name
        assert set(service.get("depends_on", ())) <= set(compose["services"])
        assert service["restart"] == "always"


def test_every_image_has_a_version(compose: Any) -> None:
    for name, image in IMAGES.items():
        repository, _, tag = compose["services"][name]["image"].rpartition(":")
        assert repository == image
        assert re.fullmatch(r"v?\d+\.\d+\.\d+", tag)
    assert compose["services"]["guard"]["build"]["dockerfile"] == "Containerfile"


def test_everything_that_is_mounted_is_there_or_asked_for(compose: Any) -> None:
    named = set()
    for service in compose["services"].values():
        for volume in service["volumes"]:
            source, target, *mode = re.sub(r"\$\{HDGUARD_ETC:\?[^}]*\}", "/etc", volume).split(":")
            assert target.startswith("/")
            if source.startswith("./"):
                assert (REPOSITORY / source).exists(), source
                assert mode == ["ro"]
            elif not source.startswith("/etc"):
                named.add(source)
    assert named == set(compose["volumes"])


def test_everything_listens_on_loopback_alone(compose: Any) -> None:
    services = compose["services"]
    assert {service["network_mode"] for service in services.values()} == {"host"}
    assert "--web.listen-address=127.0.0.1:9090" in services["prometheus"]["command"]
    assert services["grafana"]["environment"]["GF_SERVER_HTTP_ADDR"] == "127.0.0.1"
    conf = (REPOSITORY / "systemd" / "mosquitto" / "hdguard.conf").read_text()
    listeners = re.findall(r"(?m)^listener (.+)$", conf)
    assert listeners == ["1883 127.0.0.1"]
    assert HttpSettings().host == "127.0.0.1"


def test_the_parts_find_each_other(compose: Any, tmp_path: Path) -> None:
    """The guard the broker, Prometheus the guard, Grafana Prometheus and its dashboards."""
    text = (REPOSITORY / "systemd" / "hdguard.toml").read_text()
    for name in re.findall(r'from_file = "([^"]+)"', text):
        (tmp_path / name).write_text("0123456789abcdef0123456789abcdef\n")
    (tmp_path / "hdguard.toml").write_text(text)
    config = load_config(tmp_path / "hdguard.toml")
    assert (config.mqtt.host, config.mqtt.port) == ("127.0.0.1", 1883)
    scraped = yaml.safe_load((FILES / "prometheus" / "prometheus.yml").read_text())
    (target,) = scraped["scrape_configs"][0]["static_configs"][0]["targets"]
    assert target == f"{config.http.host}:{config.http.port}"
    sources = FILES / "grafana" / "provisioning" / "datasources" / "hdguard.yaml"
    assert yaml.safe_load(sources.read_text())["datasources"][0]["url"] == "http://127.0.0.1:9090"
    boards = FILES / "grafana" / "provisioning" / "dashboards" / "hdguard.yaml"
    path = yaml.safe_load(boards.read_text())["providers"][0]["options"]["path"]
    mounted = [v.split(":")[1] for v in compose["services"]["grafana"]["volumes"]]
    assert path in mounted


def test_the_brokers_files_are_where_its_configuration_says(compose: Any) -> None:
    conf = (REPOSITORY / "systemd" / "mosquitto" / "hdguard.conf").read_text()
    named = re.findall(r"(?m)^(?:password_file|acl_file) (.+)$", conf)
    mounted = [v.removesuffix(":ro").split(":")[-1] for v in volumes(compose, "mosquitto")]
    assert set(named) <= set(mounted)


def volumes(compose: Any, name: str) -> list[str]:
    found: list[str] = compose["services"][name]["volumes"]
    return found


def test_no_password_stands_in_it(compose: Any) -> None:
    password = compose["services"]["grafana"]["environment"]["GF_SECURITY_ADMIN_PASSWORD"]
    assert password.startswith("${GRAFANA_PASSWORD:?")


def test_the_guard_may_do_no_more_than_it_must(compose: Any) -> None:
    guard = compose["services"]["guard"]
    assert guard["read_only"] is True
    assert guard["cap_drop"] == ["ALL"]
    assert guard["security_opt"] == ["no-new-privileges:true"]
