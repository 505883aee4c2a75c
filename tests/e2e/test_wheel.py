"""The wheel, installed outside the checkout, replays from there."""

import json
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.ingest.media import Clip, write_video

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.timeout(300)
def test_the_wheel_has_all_packages_and_replays_outside_the_checkout(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", str(tmp_path), "."],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("hdguard-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    packed = {name.split("/")[0] for name in names}
    page = {name for name in names if name.startswith("hdguard/observe/page/")}
    assert {Path(name).suffix for name in page} == {".html", ".css", ".js", ".svg"}
    assert {"hdguard", "sim_bridge", "benchmarks"} <= packed
    assert "tests" not in packed

    # The dependencies come from this environment, the package itself from the wheel alone.
    env = tmp_path / "env"
    venv.create(env, with_pip=True)
    python = env / "bin" / "python"
    subprocess.run(
        [str(python), "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", str(wheel)],
        check=True,
    )
    site = next((env / "lib").glob("python*/site-packages"))
    ours = next(Path(sys.prefix).glob("lib/python*/site-packages"))
    (site / "dependencies.pth").write_text(f"{ours}\n")

    data = tmp_path / "data"
    data.mkdir()
    write_video(data / "a_C1_L1_D1.mp4", Clip(range(30)))
    keyframes = {"intent_onset": 0.5, "pnr": 2.0, "impact_outcome": 2.5}
    annotation = {"video_name": "a_C1_L1_D1.mp4", "keyframes": keyframes}
    (data / "anno_truth.json").write_text(json.dumps({"annotations": [annotation]}))
    trace = tmp_path / "t.json"
    rows = [{"t": 0.0, "light": "green"}, {"t": 0.9, "light": "red"}]
    fast = {"*": {"videos": {"*": rows}}}
    trace.write_text(json.dumps({"format": "hdguard-trace/1", "fast": fast, "slow": {}}))
    run = subprocess.run(
        [str(env / "bin" / "hdguard"), "replay", str(data), "--fast", f"trace:{trace}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    (results,) = tmp_path.glob("runs/*/results.json")
    (video,) = json.loads(results.read_text())["videos"]
    assert video["warning"]["trigger"] == 1.0
    assert video["phase"]["trigger"] == "optimal"
    where = subprocess.run(
        [str(python), "-c", "import hdguard; print(hdguard.__file__)"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(env) in where.stdout
