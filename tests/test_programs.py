"""Programs in C, C++, Fortran, R and Julia that use the compiled library; damaged files and threads under sanitizers."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from compiled import ADDRESSES, NATIVE, PROGRAMS, SANITIZERS, THREADS, compiled, library_object, linked_program
from damage import small_models

import stitchwork.native
from stitchwork import StitchedRegressor
from stitchwork.datasets import load_dataset

SOLVERS = Path(__file__).parents[1] / "examples" / "solvers"

with_library = pytest.mark.skipif(not stitchwork.native.available(), reason="the package was built without a C compiler")
with_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


def numbers_of(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=True)
    return np.array(done.stdout.split(), dtype=float)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A small model of two features and its file."""
    path = tmp_path_factory.mktemp("native") / "m.stitch"
    X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    model = StitchedRegressor(selection=None, kernel="gaussian").fit(X, np.sin(3 * X[:, 0]) + (X**2).sum(axis=1))
    model.save(path)
    return model, path


@with_compiler
def test_the_example_in_c(saved):
    model, path = saved
    found = numbers_of(linked_program(SOLVERS / "table.c"), path, 0.3, -0.2)
    value, slope = model.predict_with_gradient([[0.3, -0.2]])
    np.testing.assert_allclose(found, [*value, *slope[0], 1.0], rtol=1e-9)


@with_compiler
def test_the_example_in_cpp(saved):
    if shutil.which("c++") is None:
        pytest.skip("there is no C++ compiler")
    flags = ("-std=c++11", "-Wall", "-Wextra", "-Werror")
    program = compiled("table", SOLVERS / "table.cpp", library_object(), flags=flags, compiler="c++")
    model, path = saved
    value, slope = model.predict_with_gradient([[0.3, -0.2]])
    np.testing.assert_allclose(numbers_of(program, path, 0.3, -0.2), [*value, *slope[0]], rtol=1e-9)
    done = subprocess.run([program, path, "0.3"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "x must have 2 features\n"
    assert len((NATIVE / "stitchwork.hpp").read_text().splitlines()) <= 60


@with_compiler
def test_the_example_in_fortran(saved, tmp_path):
    if shutil.which("gfortran") is None:
        pytest.skip("there is no Fortran compiler: apt-get install gfortran")
    flags = ("-std=f2008", "-Wall", "-Wextra", "-Werror")
    sources = (NATIVE / "stitchwork.f90", SOLVERS / "table.f90", library_object())
    program = compiled("table", *sources, flags=flags, compiler="gfortran")
    model, path = saved
    value, slope = model.predict_with_gradient([[0.3, -0.2]])
    np.testing.assert_allclose(numbers_of(program, path, 0.3, -0.2), [*value, *slope[0]], rtol=1e-9)
    done = subprocess.run([program, tmp_path / "absent", "0", "0"], capture_output=True, text=True, check=False)
    assert "there is no such file" in done.stderr


@with_library
@with_compiler
def test_the_example_in_r(saved, tmp_path):
    if shutil.which("Rscript") is None:
        pytest.skip("there is no R: apt-get install r-base-core")
    shim = tmp_path / "table_r.so"
    library = stitchwork.native.library()
    command = ["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", f"-I{NATIVE}", SOLVERS / "table_r.c", library]
    subprocess.run([*map(str, command), f"-Wl,-rpath,{Path(library).parent}", "-o", str(shim)], check=True)
    model, path = saved
    value, slope = model.predict_with_gradient([[0.3, -0.2]])
    found = numbers_of("Rscript", SOLVERS / "table.R", shim, path, 0.3, -0.2)
    np.testing.assert_allclose(found, [*value, *slope[0]], rtol=1e-14)
    command = ["Rscript", SOLVERS / "table.R", shim, tmp_path / "absent", "0", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "cannot be opened" in done.stderr


@with_library
def test_the_example_in_julia(saved):
    if shutil.which("julia") is None:
        pytest.skip("there is no Julia")
    model, path = saved
    value, slope = model.predict_with_gradient([[0.3, -0.2]])
    found = numbers_of("julia", SOLVERS / "table.jl", stitchwork.native.library(), path, 0.3, -0.2)
    np.testing.assert_allclose(found, [*value, *slope[0]], rtol=1e-14)


def rosenbrock(model, state, time, steps):
    """What `reactor.c` does, in Python."""
    gamma, h, d = 1 + 1 / np.sqrt(2), time / steps, len(state)
    for _ in range(steps):
        S, J = (part[0] for part in model.predict_with_gradient(state[None]))
        A = np.eye(d) - gamma * h * J
        k1 = np.linalg.solve(A, S)
        k2 = np.linalg.solve(A, model.predict((state + h * k1)[None])[0] - 2 * k1)
        state = state + h * (1.5 * k1 + 0.5 * k2)
    return state


@with_compiler
def test_a_reactor_with_tabulated_chemistry_in_c_agrees_with_python(tmp_path):
    from scipy.integrate import solve_ivp

    try:
        table = load_dataset("combustion")
    except (FileNotFoundError, ImportError) as missing:
        pytest.skip(str(missing))
    some = np.random.default_rng(0).permutation(len(table.data))[:4000]
    model = StitchedRegressor(kernel="gaussian", metric="euclidean", selection=None, ridge=1e-8).fit(
        table.data[some], table.sources[some]
    )
    model.save(tmp_path / "table.stitch")
    start = table.data[some[np.abs(table.sources[some, 0]).argmax()]]
    time = 0.2 * np.ptp(table.data[:, 0]) / np.abs(table.sources[:, 0]).max()
    program = linked_program(SOLVERS / "reactor.c")
    *end, covered = numbers_of(program, tmp_path / "table.stitch", time, 200, *start)
    assert 0.0 <= covered <= 1.0
    np.testing.assert_allclose(end, rosenbrock(model, start, time, 200), rtol=1e-7)
    exact = solve_ivp(
        lambda _, s: model.predict(s[None])[0],
        (0, time),
        start,
        jac=lambda _, s: model.gradient(s[None])[0],
        method="Radau",
        rtol=1e-9,
        atol=1e-9,
    )
    moved = np.abs(exact.y[:, -1] - start).max()
    # The method is of second order: 200 steps across a change of about one leave some (1/200)².
    np.testing.assert_allclose(end, exact.y[:, -1], atol=1e-3 * moved)


@with_compiler
def test_exp_and_log_are_right_to_two_units_in_the_last_place_and_misuse_is_told():
    flags = ("-std=gnu99", "-O1", "-DST_ONE_ENGINE", "-Wall", "-Wextra", "-Wno-unused-function", "-Werror")
    program = compiled("arithmetic", PROGRAMS / "arithmetic.c", flags=flags)
    exp_error, log_error = numbers_of(program)
    assert exp_error < 1.5
    assert log_error < 2.0


@with_compiler
def test_damaged_files_neither_crash_nor_leak(tmp_path):
    program = linked_program(PROGRAMS / "damage.c", SANITIZERS)
    for number, (model, asked) in enumerate(small_models()):
        path = tmp_path / f"{number}.stitch"
        model.save(path, **asked)
        done = subprocess.run(
            [program, path, tmp_path / "copy", "340", str(number)], capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stderr
        seen = {line.split(" ", 1)[1]: int(line.split()[0]) for line in done.stdout.splitlines()}
        assert sum(seen.values()) == 340
        assert len(seen) >= 4


@with_compiler
@pytest.mark.parametrize("flags", [ADDRESSES, SANITIZERS], ids=["addresses", "addresses and undefined"])
def test_sanitizers_find_nothing_in_a_sound_model(saved, flags):
    program = linked_program(SOLVERS / "table.c", flags)
    model, path = saved
    for x in ([0.3, -0.2], [0.99, 0.99], [-3.0, 40.0], [1e308, -1e308]):
        found = numbers_of(program, path, *x)
        value, slope = model.predict_with_gradient([x])
        np.testing.assert_allclose(found[:3], [*value, *slope[0]], rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(found[3], model.coverage([x])[0], atol=1e-12)


@with_compiler
def test_valgrind_finds_nothing(saved):
    if shutil.which("valgrind") is None:
        pytest.skip("there is no valgrind")
    program = linked_program(SOLVERS / "table.c")
    command = ["valgrind", "--error-exitcode=9", "--leak-check=full", "-q", program, saved[1], "0.95", "0.2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@with_library
def test_threads_touch_no_memory_of_each_other(tmp_path):
    """Under ThreadSanitizer; each answer is that of one thread, bit for bit."""
    try:
        program = linked_program(PROGRAMS / "threads.c", THREADS)
    except subprocess.CalledProcessError:
        pytest.skip("the compiler has no ThreadSanitizer")
    for number, (model, asked) in enumerate(small_models()):
        path = tmp_path / f"{number}.stitch"
        model.save(path, **asked)
        done = subprocess.run([program, path, "4", "5"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
