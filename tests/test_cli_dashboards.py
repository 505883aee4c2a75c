"""`hdguard dashboards export` as people run it."""

from pathlib import Path

from typer.testing import CliRunner

from hdguard.cli import cli
from hdguard.cli_dashboards import next_step
from hdguard.observe.dashboards.export import shipped


def export(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["dashboards", "export", *words])
    return done.exit_code, done.output


def test_it_says_what_it_wrote_and_what_to_do_next(tmp_path: Path) -> None:
    code, said = export(str(tmp_path))
    assert code == 0
    for name in shipped():
        assert f"written   {tmp_path / name}\n" in said
    assert f"--config.file={tmp_path}/prometheus/prometheus.yml" in said
    assert f"cp -r {tmp_path}/grafana/provisioning /etc/grafana/" in said


def test_the_next_step_names_files_that_are_there(tmp_path: Path) -> None:
    export(str(tmp_path))
    named = [word for word in next_step(tmp_path).split() if str(tmp_path) in word]
    for word in named:
        path = word.removeprefix("--config.file=").rstrip(",").replace("*.json", "latency.json")
        assert Path(path).exists(), word


def test_changes_are_kept_said_and_fail_the_command_until_it_is_forced(tmp_path: Path) -> None:
    export(str(tmp_path))
    file = tmp_path / "prometheus" / "prometheus.yml"
    file.write_text("# our guards\n")
    code, said = export(str(tmp_path))
    assert code == 1
    assert f"kept: {file} differs from ours; --force overwrites it" in said
    assert file.read_text() == "# our guards\n"
    code, said = export(str(tmp_path), "--force")
    assert (code, file.read_text() == "# our guards\n") == (0, False)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    code, said = export(str(tmp_path / "taken"))
    assert code == 65
    assert "taken" in said


def test_its_help_has_an_example() -> None:
    code, said = export("--help")
    assert code == 0
    assert "hdguard dashboards export monitoring" in said
