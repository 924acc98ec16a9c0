"""The wheel holds what the program needs at run time, and works where only the wheel is."""

import importlib.util
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this tree."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("*.whl")
    return built


def in_tree(folder: str, pattern: str) -> set[str]:
    """Paths under a folder of the tree, relative to it."""
    return {path.relative_to(ROOT / folder).as_posix() for path in (ROOT / folder).rglob(pattern)}


def in_wheel(wheel: Path, folder: str) -> set[str]:
    """Paths under a folder of the wheel, relative to it."""
    with zipfile.ZipFile(wheel) as archive:
        return {
            name.removeprefix(f"{folder}/") for name in archive.namelist() if name.startswith(f"{folder}/")
        }


@pytest.mark.parametrize(
    ("folder", "pattern", "packaged"),
    [
        ("schemas", "*.sql", "tracelens/schemas"),
        ("schemas", "*.json", "tracelens/schemas"),
        ("tracelens/queries", "*.sql", "tracelens/queries"),
        ("tracelens/rules", "*.sql", "tracelens/rules"),
        ("tracelens/loading", "*.sql", "tracelens/loading"),
        ("sample_logs", "*.*", "tracelens/sample_logs"),
        ("tracelens/next_time", "*.sh", "tracelens/next_time"),
        ("tracelens/report/templates", "*.j2", "tracelens/report/templates"),
        ("tracelens/report/assets", "*.*", "tracelens/report/assets"),
        ("tracelens", "*.py", "tracelens"),
        ("tracelens", "py.typed", "tracelens"),
    ],
)
def test_the_wheel_holds_every_file_that_is_read_at_run_time(
    wheel: Path, folder: str, pattern: str, packaged: str
) -> None:
    wanted = in_tree(folder, pattern)
    assert wanted
    assert wanted <= in_wheel(wheel, packaged)


def test_the_wheel_holds_the_licence_and_no_cases(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    assert not [name for name in names if name.endswith(".cases.toml")]
    assert {name.split("/")[0].split("-")[0] for name in names} == {"tracelens", "tracelens_vllm"}


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("ensurepip") is None, reason="this Python makes no environments with pip"
)
def test_the_wheel_works_where_only_the_wheel_is(wheel: Path, tmp_path: Path) -> None:
    """In a fresh environment that sees the dependencies of this one, but not the checkout."""
    home = tmp_path / "venv"
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TRACELENS"))
    }

    def output(program: str, *arguments: str | Path) -> str:
        command = [home / "bin" / program, *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=clean, check=True, capture_output=True, text=True
        ).stdout

    subprocess.run([sys.executable, "-m", "venv", home], check=True)
    output("python", "-m", "pip", "install", "--no-deps", "--no-index", wheel)
    site = Path(output("python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")

    where = output("python", "-c", "import tracelens; print(tracelens.__file__)").strip()
    assert Path(where).is_relative_to(site)
    assert output("tracelens", "--version").startswith("tracelens")
    assert "request_stage" in output("tracelens", "schema", "--format", "csv")
    assert "96 of 96" in output("tracelens", "demo")
