"""`hdguard dashboards export`: the files for Grafana and Prometheus, out of the package."""

from pathlib import Path
from typing import Annotated

import typer

from hdguard.cli_errors import errors, say_error
from hdguard.observe.dashboards.export import export

dashboards = typer.Typer(
    no_args_is_help=True, help="Dashboards and alerts, for Grafana and Prometheus."
)


@dashboards.command(
    name="export",
    epilog="Examples:\n\n  hdguard dashboards export monitoring\n\n"
    "  hdguard dashboards export monitoring --force",
)
def export_files(
    folder: Annotated[Path, typer.Argument(help="Where to; made if it is missing.", metavar="DIR")],
    force: Annotated[bool, typer.Option("--force", help="Also over changed files.")] = False,
) -> None:
    """Write the dashboards for Grafana, and the rules and a configuration for Prometheus.

    A file that is there already and is different stays, unless --force is given; the exit code is
    then 1.
    """
    with errors():
        done = export(folder, force=force)
    for name in done.written:
        typer.echo(f"written   {folder / name}")
    if done.same:
        typer.echo(f"unchanged {len(done.same)} files")
    for name in done.kept:
        say_error(f"kept: {folder / name} differs from ours; --force overwrites it")
    typer.echo(next_step(folder))
    raise typer.Exit(1 if done.kept else 0)


def next_step(folder: Path) -> str:
    """What to do with the files."""
    return (
        "\nPrometheus: name your guards in"
        f" {folder / 'prometheus' / 'prometheus.yml'}, then\n"
        f"  prometheus --config.file={folder / 'prometheus' / 'prometheus.yml'}"
        " --web.listen-address=127.0.0.1:9090\n"
        "Grafana 11: as root, and then restart it\n"
        f"  cp -r {folder / 'grafana' / 'provisioning'} /etc/grafana/\n"
        "  mkdir -p /var/lib/grafana/dashboards/hdguard\n"
        f"  cp {folder / 'grafana' / 'dashboards'}/*.json /var/lib/grafana/dashboards/hdguard/"
    )
