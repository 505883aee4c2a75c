"""What all panels have in common, said once: data source, limits as lines, words and colours.

Grafana's SDK has a builder for each kind of panel and none above them; `Tile` is what is said of a
panel of any kind, and one function for each kind says the rest.
"""

from dataclasses import dataclass
from string import ascii_uppercase
from typing import TypeVar

from grafana_foundation_sdk.builders import (
    bargauge,
    common,
    dashboard,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models.dashboard import (
    Dashboard,
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    DataTransformerConfig,
    FieldColorModeId,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMapping,
    ValueMappingResult,
    VariableOption,
    VariableRefresh,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

Step = tuple[float | None, str]
"""From this value on, this colour; None: from the lowest."""

Words = dict[int, tuple[str, str]]
"""Value -> what it means, and its colour."""

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
TAG = "hdguard"

AnyPanel = bargauge.Panel | stat.Panel | statetimeline.Panel | table.Panel | timeseries.Panel
PanelT = TypeVar(
    "PanelT", bargauge.Panel, stat.Panel, statetimeline.Panel, table.Panel, timeseries.Panel
)


def of(metric: str, **labels: str) -> str:
    """The selector of a metric of the chosen guard; a value of $NAME or ~PATTERN is a pattern."""
    return recorded(f"hdguard_{metric}", **labels)


def recorded(series: str, **labels: str) -> str:
    """The same of a series by its full name, as recording rules have it."""
    chosen = {"job": "$job", "instance": "$instance", **labels}
    inner = ",".join(
        f'{name}{"=~" if value[0] in "$~" else "="}"{value.removeprefix("~")}"'
        for name, value in chosen.items()
    )
    return f"{series}{{{inner}}}"


def quantile(share: float, histogram: str, *by: str, over: str = "$__rate_interval") -> str:
    """The query of a histogram's quantile; `histogram` without `_bucket` and without the guard."""
    kept = ", ".join(("le", *by))
    return (
        f"histogram_quantile({share}, sum by ({kept}) (rate({of(f'{histogram}_bucket')}[{over}])))"
    )


@dataclass(frozen=True, slots=True)
class Query:
    """One query.

    Attributes:
        expr: PromQL.
        legend: how a series is called, with {{label}}.
        now: only the newest value, else the course.
        buckets: of a histogram, to be shown without what is in the bucket below.
    """

    expr: str
    legend: str = ""
    now: bool = False
    buckets: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """What is said of a panel of any kind.

    Attributes:
        title: what is shown, in words of the guard.
        says: what an operator concludes from it, and does.
        queries: at least one.
        width: of 24 columns.
        height: in Grafana's rows of 30 pixels.
        unit: Grafana's name of it.
        limits: from which value on which colour; drawn as lines where there is a course.
        table: for a `listing`.
    """

    title: str
    says: str
    queries: tuple[Query, ...]
    width: int = 12
    height: int = 8
    unit: str = "s"
    limits: tuple[Step, ...] = ((None, "green"),)
    table: bool = False


def small(
    title: str,
    says: str,
    expr: str,
    unit: str = "none",
    limits: tuple[Step, ...] = ((None, "blue"),),
) -> Tile:
    """One of eight side by side, for a value of now."""
    queries = (Query(expr, now=True),)
    return Tile(
        title=title, says=says, queries=queries, width=3, height=4, unit=unit, limits=limits
    )


def chart(tile: Tile) -> timeseries.Panel:
    """A course over time; what is seldom shows as points."""
    legend = (
        common.VizLegendOptions()
        .show_legend(True)
        .display_mode(kinds.LegendDisplayMode.LIST)
        .placement(kinds.LegendPlacement.BOTTOM)
    )
    lined = kinds.GraphThresholdsStyleMode
    style = lined.DASHED if len(tile.limits) > 1 else lined.OFF
    tooltip = common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI)
    return (
        _said(timeseries.Panel(), tile)
        .min(0.0)
        .line_width(1)
        .fill_opacity(8)
        .show_points(kinds.VisibilityMode.AUTO)
        .color_scheme(dashboard.FieldColor().mode(FieldColorModeId.PALETTE_CLASSIC_BY_NAME))
        .thresholds_style(common.GraphThresholdsStyleConfig().mode(style))
        .legend(legend)
        .tooltip(tooltip)
    )


def number(tile: Tile, words: Words | None = None) -> stat.Panel:
    """The newest value, large, in its colour."""
    return (
        _said(stat.Panel(), tile)
        .mappings(_mapped(words))
        .graph_mode(kinds.BigValueGraphMode.NONE)
        .color_mode(kinds.BigValueColorMode.BACKGROUND)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .no_value("no data")
    )


def strip(tile: Tile, words: Words) -> statetimeline.Panel:
    """Which of a few states held when, one strip for each series."""
    return (
        _said(statetimeline.Panel(), tile)
        .mappings(_mapped(words))
        .merge_values(True)
        .show_value(kinds.VisibilityMode.AUTO)
        .row_height(0.8)
        .fill_opacity(80)
        .line_width(0)
        .legend(common.VizLegendOptions().show_legend(False))
    )


def bars(tile: Tile) -> bargauge.Panel:
    """One bar for each series, by its newest value."""
    return (
        _said(bargauge.Panel(), tile)
        .min(0.0)
        .orientation(kinds.VizOrientation.HORIZONTAL)
        .display_mode(kinds.BarGaugeDisplayMode.BASIC)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .no_value("no data")
    )


def listing(tile: Tile, value: str) -> table.Panel:
    """A row for each series: its labels, and its newest value under the name `value`."""
    shown = {"excludeByName": {"Time": True}, "renameByName": {"Value": value}}
    return (
        _said(table.Panel(), tile)
        .show_header(True)
        .with_transformation(DataTransformerConfig(id_val="organize", options=shown))
        .no_value("none")
    )


def _said(panel: PanelT, tile: Tile) -> PanelT:
    formats = PromQueryFormat
    kind = formats.TABLE if tile.table else formats.TIME_SERIES
    queries = []
    for name, query in zip(ascii_uppercase, tile.queries, strict=False):
        shape = formats.HEATMAP if query.buckets else kind
        built = prometheus.Dataquery().ref_id(name).expr(query.expr).format(shape)
        built = built.legend_format(query.legend).datasource(SOURCE)
        queries.append(built.instant() if query.now else built.range())
    steps = [Threshold(value=value, color=colour) for value, colour in tile.limits]
    limits = dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)
    panel = panel.title(tile.title).description(tile.says).datasource(SOURCE)
    panel = panel.span(tile.width).height(tile.height).unit(tile.unit).thresholds(limits)
    return panel.targets(list(queries))


def _mapped(words: Words | None) -> list[ValueMapping]:
    if words is None:
        return []
    results = {
        str(value): ValueMappingResult(text=text, color=colour, index=index)
        for index, (value, (text, colour)) in enumerate(words.items())
    }
    return [ValueMap(options=results)]


class Board:
    """A dashboard to be: panels get their numbers in the order in which they are added.

    Args:
        uid: its name in addresses; never changes.
        title: for people.
        says: what the dashboard answers.
    """

    def __init__(self, uid: str, title: str, says: str) -> None:
        self._count = 0
        others = dashboard.DashboardLink("hdguard").type(DashboardLinkType.DASHBOARDS)
        others = others.tags([TAG]).as_dropdown(True).keep_time(True)
        self._board = (
            dashboard.Dashboard(title)
            .uid(uid)
            .description(says)
            .tags([TAG])
            .timezone("browser")
            .tooltip(DashboardCursorSync.CROSSHAIR)
            .link(others)
            .with_variable(dashboard.DatasourceVariable("datasource").type("prometheus"))
        )

    def lasts(self, span: str, refresh: str) -> None:
        """Show the last `span` at first, anew every `refresh`; both as in 15m."""
        self._board = self._board.time(f"now-{span}", "now").refresh(refresh)

    def choice(self, name: str, metric: str, *, every: bool = False) -> None:
        """Let people choose among that label's values of a metric; `every`: several, or all."""
        within = {"job": "", "instance": 'job=~"$job"'}.get(name, 'instance=~"$instance"')
        variable = (
            dashboard.QueryVariable(name)
            .query(f"label_values(hdguard_{metric}{{{within}}}, {name})")
            .datasource(SOURCE)
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        )
        if every:
            everything = VariableOption(selected=True, text=["All"], value=["$__all"])
            variable = variable.multi(True).include_all(True)
            variable = variable.all_value(".*").current(everything)
        self._board = self._board.with_variable(variable)

    def row(self, title: str, *panels: AnyPanel) -> None:
        """A heading, and panels below it from left to right."""
        self._count += 1
        self._board = self._board.with_row(dashboard.Row(title).id(self._count))
        for panel in panels:
            self._count += 1
            self._board = self._board.with_panel(panel.id(self._count))

    def built(self) -> Dashboard:
        """The dashboard as the SDK's model of it."""
        return self._board.build()
