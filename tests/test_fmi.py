"""A model as a functional mock-up unit: FMPy finds it valid, and simulates what the model says."""

import zipfile

import numpy as np
import pytest

import stitchwork.native
from stitchwork import StitchedRegressor
from stitchwork.fmi import write_fmu

if not stitchwork.native.available():
    pytest.skip("the package was built without a C compiler", allow_module_level=True)


@pytest.fixture(scope="module")
def model():
    pd = pytest.importorskip("pandas")
    X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    frame = pd.DataFrame(X, columns=["flow & heat", "T"])
    frame.attrs["units"] = {"T": "K"}
    Y = pd.DataFrame({"p": np.sin(3 * X[:, 0]) + X[:, 1], "h": X[:, 0] * X[:, 1]})
    return StitchedRegressor(kernel="gaussian").fit(frame, Y)


@pytest.fixture
def unit(model, tmp_path):
    folder = tmp_path / "a folder with spaces, ü and %"
    folder.mkdir()
    write_fmu(model, folder / "m.fmu", name="m")
    return folder / "m.fmu"


def at(model, X):
    return model.model_.jet(np.atleast_2d(X), 1)


def test_fmpy_finds_the_unit_valid(unit):
    pytest.importorskip("fmpy", reason="needs FMPy: pip install FMPy")
    from fmpy.validation import validate_fmu

    assert validate_fmu(str(unit)) == []


@pytest.mark.parametrize("interface", ["CoSimulation", "ModelExchange"])
def test_a_simulation_says_what_the_model_says(unit, model, interface):
    fmpy = pytest.importorskip("fmpy", reason="needs FMPy: pip install FMPy")
    time = np.linspace(0, 1, 11)
    X = np.c_[0.8 * np.cos(3 * time), 0.8 * np.sin(3 * time)]
    signals = np.array(
        [(t, *x) for t, x in zip(time, X, strict=True)], dtype=[("time", float), ("flow & heat", float), ("T", float)]
    )
    found = fmpy.simulate_fmu(
        str(unit), fmi_type=interface, stop_time=1.0, step_size=0.1, output_interval=0.1, input=signals, output=["p", "h"]
    )
    expected = at(model, X).value
    rows = [int(np.abs(found["time"] - t).argmin()) for t in time]
    if interface == "CoSimulation":  # a step is taken with the inputs at its beginning
        np.testing.assert_array_equal(found["p"][rows][1:], expected[:-1, 0])
    else:
        np.testing.assert_allclose(np.c_[found["p"], found["h"]][rows], expected, rtol=1e-12, atol=1e-12)


def test_derivatives_and_start_are_those_of_the_model(unit, model, tmp_path):
    fmpy = pytest.importorskip("fmpy", reason="needs FMPy: pip install FMPy")
    from fmpy.fmi2 import FMU2Slave

    description = fmpy.read_model_description(str(unit))
    folder = fmpy.extract(str(unit), str(tmp_path / "out of %25 it"))
    slave = FMU2Slave(guid=description.guid, unzipDirectory=folder, modelIdentifier="m", instanceName="one")
    slave.instantiate()
    try:
        slave.setupExperiment()
        slave.enterInitializationMode()
        start = [float(variable.start) for variable in description.modelVariables[:2]]
        np.testing.assert_array_equal(start, np.median(model.model_.X, axis=0))
        np.testing.assert_array_equal(slave.getReal([0, 1]), start)
        slave.exitInitializationMode()
        slave.setReal([0, 1], [0.3, -0.2])
        expected = at(model, [0.3, -0.2])
        np.testing.assert_array_equal(slave.getReal([2, 3]), expected.value[0])
        seed = [2.0, -1.0]
        found = slave.getDirectionalDerivative([2, 3], [0, 1], seed)
        np.testing.assert_allclose(found, expected.gradient[0] @ seed, rtol=1e-14)
        slave.reset()
        np.testing.assert_array_equal(slave.getReal([0, 1]), start)
        with pytest.raises(fmpy.fmi1.FMICallException):
            slave.setReal([2], [1.0])
    finally:
        slave.freeInstance()


def test_the_unit_names_units_and_brings_its_sources(unit):
    with zipfile.ZipFile(unit) as archive:
        assert {"sources/fmi.c", "sources/stitchwork.c", "sources/stitchwork.h"} <= set(archive.namelist())
        description = archive.read("modelDescription.xml").decode()
    assert '<Unit name="K" />' in description
    assert 'name="flow &amp; heat"' in description


def test_other_platforms_take_the_libraries_they_are_given(model, tmp_path):
    (tmp_path / "other.dll").write_bytes(b"of another machine")
    write_fmu(model, tmp_path / "m.fmu", name="m", libraries={"win64": tmp_path / "other.dll"})
    with zipfile.ZipFile(tmp_path / "m.fmu") as archive:
        assert archive.read("binaries/win64/m.dll") == b"of another machine"


def test_bad_names_and_platforms_are_refused_and_nothing_is_written(model, tmp_path):
    with pytest.raises(ValueError, match="`name` must be"):
        write_fmu(model, tmp_path / "m.fmu", name="my model")
    with pytest.raises(ValueError, match="`libraries` must name platforms"):
        write_fmu(model, tmp_path / "m.fmu", libraries={"amiga": tmp_path / "m.so"})
    with pytest.raises(FileNotFoundError):
        write_fmu(model, tmp_path / "m.fmu", libraries={"linux64": tmp_path / "absent.so"})
    assert list(tmp_path.iterdir()) == []
