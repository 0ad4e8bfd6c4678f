"""The tree shows the architecture: imports point downwards, importing is light, the core is silent."""

import ast
import subprocess
import sys
from pathlib import Path

import stitchwork

PACKAGE = Path(stitchwork.__file__).parent

# From formulas to what users touch; a module imports from earlier rows only, or from its own row if listed before.
LAYERS = [
    ["_radial", "_polynomial", "_linalg", "_parallel", "_errors", "_files"],
    ["_cover", "_local", "_lookup", "_blocks", "_metric", "_loo", "_select", "_holes", "_stitch", "_background"],
    ["_plan", "_validation", "_learn", "_assembly", "_io", "_boxes", "_shards", "_shard_io", "_summary"],
    ["_tables", "_slices", "_grid", "_notebook"],
    ["_function", "_regressor"],
    ["dask", "datasets", "experiments", "plotting", "report", "export", "_commands", "demo", "cli"],
]
RANK = {name: (layer, place) for layer, names in enumerate(LAYERS) for place, name in enumerate(names)}


def own_imports(path):
    """Names of the package's own modules that a module imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            found.update([node.module.split(".")[0]] if node.module else [alias.name for alias in node.names])
    return found & set(RANK)


def test_every_module_has_its_place():
    modules = {path.stem for path in PACKAGE.glob("*.py")} | {
        path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()
    }
    assert modules - {"__init__"} == set(RANK)


def test_imports_point_downwards():
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if name != "__init__":
            assert all(RANK[used] < RANK[name] for used in own_imports(path) - {name}), (name, own_imports(path))


def test_modules_stay_small():
    assert all(len(path.read_text().splitlines()) <= 400 for path in PACKAGE.rglob("*.py"))


def test_the_core_prints_nothing():
    for path in PACKAGE.glob("_*.py"):
        calls = [
            n.func.id for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
        ]
        assert "print" not in calls


def test_importing_is_light():
    heavy = ["matplotlib", "plotly", "dask", "xgboost", "torch", "jax", "typer", "tqdm"]
    code = f"import sys, stitchwork; print([m for m in {heavy!r} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_all_public_functions_are_documented():
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        assert ast.get_docstring(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                nested = any(
                    node in ast.walk(other) for other in ast.walk(tree) if isinstance(other, ast.FunctionDef) and other is not node
                )
                assert ast.get_docstring(node) or nested, (path.name, node.name)
