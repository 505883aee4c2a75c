"""Generates the dashboards into the package: `python -m hdguard.observe.dashboards.make`.

For whoever changes a dashboard; everybody else takes the files, which need no SDK. The output is
the same to the byte for the same code, so that a change of a dashboard can be read in its diff.
"""

import json
import sys

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from hdguard.observe.dashboards import campaign, latency, watching
from hdguard.observe.dashboards.export import FILES

FOLDER = FILES / "grafana" / "dashboards"
BOARDS = {"watching": watching.board, "latency": latency.board, "campaign": campaign.board}


def generated() -> dict[str, str]:
    """File name -> its text, for every dashboard."""
    return {f"{name}.json": _text(board().built()) for name, board in BOARDS.items()}


def _text(model: object) -> str:
    encoded = JSONEncoder(sort_keys=True).encode(model)
    return json.dumps(json.loads(encoded), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def main() -> None:
    """Write them all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in generated().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        sys.stdout.write(f"{FOLDER / name}\n")


if __name__ == "__main__":
    main()
