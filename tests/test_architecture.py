"""The tree shows the architecture: rooms are folders, imports between them point one way, the core is light and silent."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import stitchwork

PACKAGE = Path(stitchwork.__file__).parent
MODULES = {path: ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")}


def name_of(path):
    """The parts of a module's name below the package: ("model", "stitch"), or ("model",) for the folder itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


NAMES = {name_of(path) for path in MODULES}


def imports_of(path, tree):
    """Names of the package's own modules that a module imports, wherever in it, by a relative or an absolute import."""
    package, found = path.relative_to(PACKAGE).parent.parts, set()
    for node in ast.walk(tree):
        targets = []
        if isinstance(node, ast.Import):
            targets = [alias.name.split(".")[1:] for alias in node.names if alias.name.split(".")[0] == "stitchwork"]
        elif isinstance(node, ast.ImportFrom):
            module = node.module.split(".") if node.module else []
            if node.level:
                base = [*package[: len(package) - node.level + 1], *module]
            elif module[0] == "stitchwork":
                base = module[1:]
            else:
                continue
            targets = [[*base, alias.name] for alias in node.names]
        for target in map(tuple, targets):
            while target not in NAMES:  # a name in a module, not a module
                target = target[:-1]
            found.add(target)
    return found - {name_of(path), ()}


def test_absolute_and_relative_imports_are_seen():
    path = PACKAGE / "model" / "stitch.py"
    assert ("local", "radial") in imports_of(path, MODULES[path])
    code = "import stitchwork.cli.tables\nfrom stitchwork.fitting.plan import Plan\nfrom stitchwork import dask\nimport numpy"
    assert imports_of(path, ast.parse(code)) == {("cli", "tables"), ("fitting", "plan"), ("dask",)}


def test_imports_between_rooms_point_one_way():
    """Folders, and the modules at the top, can be put in an order in which each imports from earlier ones only."""
    rooms = {}
    for path, tree in MODULES.items():
        room = name_of(path)[:1]
        if room:
            rooms.setdefault(room, set()).update({used[:1] for used in imports_of(path, tree)} - {room})
    list(TopologicalSorter(rooms).static_order())  # raises CycleError
    assert rooms[("local",)] <= {("_parallel",), ("_types",), ("native",)}
    assert rooms[("native",)] <= {("_parallel",)}
    assert rooms[("model",)] <= {("_parallel",), ("_types",), ("local",), ("native",)}
    assert rooms[("fitting",)] <= {("_parallel",), ("_types",), ("local",), ("model",)}
    assert not any(("experiments",) in used for room, used in rooms.items() if room != ("cli",))


def test_imports_inside_of_rooms_point_one_way():
    modules = {name_of(path): imports_of(path, tree) for path, tree in MODULES.items() if name_of(path)}
    list(TopologicalSorter(modules).static_order())


def test_few_modules_stand_at_the_top():
    assert len(list(PACKAGE.glob("*.py"))) <= 12


# Of named tuples, of scikit-learn, of notebooks: names with an underscore that are theirs to give.
GIVEN = {"_asdict", "_replace", "_get_param_names", "_repr_html_", "_repr_mimebundle_"}


def test_nothing_reaches_into_private_attributes_of_others():
    for path, tree in MODULES.items():
        own = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.FunctionDef)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
                mine = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
                called_super = isinstance(node.value, ast.Call) and ast.unparse(node.value) == "super()"
                assert mine or called_super or node.attr in own | GIVEN, (path.name, ast.unparse(node))


def test_modules_stay_small():
    assert all(len(path.read_text().splitlines()) <= 400 for path in MODULES)


def test_the_core_prints_nothing():
    for path, tree in MODULES.items():
        if name_of(path)[:1] not in (("cli",), ("experiments",)):
            calls = [n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
            assert "print" not in calls, path


def test_importing_is_light():
    heavy = ["matplotlib", "plotly", "dask", "xgboost", "torch", "jax", "typer", "tqdm", "sklearn", "scipy"]
    code = f"import sys, stitchwork; print([m for m in {heavy!r} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_all_public_functions_are_documented():
    for path, tree in MODULES.items():
        assert ast.get_docstring(tree), path
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                nested = any(
                    node in ast.walk(other) for other in ast.walk(tree) if isinstance(other, ast.FunctionDef) and other is not node
                )
                assert ast.get_docstring(node) or nested, (path.name, node.name)


def test_every_number_of_the_default_tells_its_reason():
    """In `fitting/defaults` it has a comment on its line or above its block."""
    explained = False
    for line in (PACKAGE / "fitting" / "defaults.py").read_text().splitlines():
        explained = line.startswith("#") or (explained and bool(line))
        if line[:1].isupper() and " = " in line:
            assert explained or "  # " in line, line
