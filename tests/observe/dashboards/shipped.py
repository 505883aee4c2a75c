"""Every query that hdguard ships, as a Prometheus can be asked it."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml  # type: ignore[import-untyped]

from hdguard.observe.dashboards.export import FILES

BOARDS = sorted((FILES / "grafana" / "dashboards").glob("*.json"))
RULES = sorted((FILES / "prometheus" / "rules").glob("*.yml"))
PROMETHEUS = FILES / "prometheus" / "prometheus.yml"
WINDOW = {"$__rate_interval": "1m", "$__range": "5m", "$__interval": "5s"}


@dataclass(frozen=True)
class Asked:
    """One query, and where it is asked: `file: panel, query` or `file: rule`."""

    where: str
    expr: str


def read(path: Any) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def panels(board: Any) -> Iterator[Any]:
    """All but the headings."""
    yield from (panel for panel in board["panels"] if panel["type"] != "row")


def asked_by_boards() -> Iterator[Asked]:
    """What fills the variables, and the panels with everything chosen: $job is any, and so on."""
    for path in BOARDS:
        for variable in read(path)["templating"]["list"]:
            if variable["type"] == "query":
                values = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"])
                assert values is not None, variable["query"]
                expr = filled(f"count by ({values[2]}) ({values[1]})")
                yield Asked(f"{path.name}: ${variable['name']}", expr)
        for panel in panels(read(path)):
            for target in panel["targets"]:
                where = f"{path.name}: {panel['title']}, {target['refId']}"
                yield Asked(where, filled(target["expr"]))


def filled(expr: str) -> str:
    for name, value in WINDOW.items():
        expr = expr.replace(name, value)
    return re.sub(r'"\$\w+"', '".*"', expr)


def rules(kind: str) -> Iterator[tuple[str, Any]]:
    """File and rule, of one kind: alert, record."""
    for path in RULES:
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]:
            yield from ((path.name, rule) for rule in group["rules"] if kind in rule)


def asked_by_rules() -> Iterator[Asked]:
    """What is recorded, and what an alert looks at: without the comparison that makes it quiet."""
    for file, rule in rules("record"):
        yield Asked(f"{file}: {rule['record']}", rule["expr"])
    for file, rule in rules("alert"):
        looked_at = re.sub(r"\s+(==|>)\s+[\d.]+", "", rule["expr"]).replace(" > on ", " - on ")
        yield Asked(f"{file}: {rule['alert']}", looked_at)


def asked() -> list[Asked]:
    return [*asked_by_boards(), *asked_by_rules()]
