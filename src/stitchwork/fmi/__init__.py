"""A fitted model as a functional mock-up unit, for simulators that import FMI 2.0.

`write_fmu` packs the compiled library, which has the functions of the standard (`native/fmi.c`), with the model's own file and the
description of its variables. So no compiler is needed, and the unit answers as the model does, with exact directional derivatives.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import uuid
import zipfile
from collections.abc import Mapping
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np
from sklearn.utils.validation import check_is_fitted

import stitchwork

from .. import native
from .._regressor import StitchedRegressor
from ..model.stitched import StitchedModel
from ..storage.whole import replacing

__all__ = ["write_fmu"]

_ENDINGS = {"linux64": ".so", "aarch64-linux": ".so", "darwin64": ".dylib", "aarch64-darwin": ".dylib", "win64": ".dll"}
_INTERFACES = ("ModelExchange", "CoSimulation")
_SOURCES = ("fmi.c", "stitchwork.c")


def write_fmu(
    model: StitchedRegressor,
    path: str | os.PathLike[str],
    name: str = "stitchwork_model",
    libraries: Mapping[str, str | os.PathLike[str]] | None = None,
) -> None:
    """Write a fitted ``model`` as a unit of FMI 2.0, for model exchange and co-simulation.

    Features are its inputs, the model's outputs its outputs, with the names that the data had. Inputs begin at the median of the
    data. The unit has no states and no time.

    Parameters
    ----------
    model : `StitchedRegressor`
        Fitted, with a built-in local model.
    path : str or path
        The file to write, usually ``….fmu``.
    name : str
        The name of the unit: a letter, then letters, digits and underscores.
    libraries : mapping, optional
        Compiled libraries by the platforms of FMI that the unit is to run on: ``linux64``, ``win64``, ``darwin64``,
        ``aarch64-linux``, ``aarch64-darwin``. The library of this installation for this platform by default; those of others
        are in their wheels, as ``stitchwork/native/stitchwork.dll`` and the like. Sources are always part of the unit.

    Raises
    ------
    FileNotFoundError
        If this installation has no compiled library and none is given.

    Examples
    --------
    >>> import zipfile
    >>> import stitchwork.native
    >>> from stitchwork import StitchedRegressor
    >>> from stitchwork.fmi import write_fmu
    >>> model = StitchedRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> if stitchwork.native.available():
    ...     write_fmu(model, "line.fmu", name="line")
    ...     assert "modelDescription.xml" in zipfile.ZipFile("line.fmu").namelist()
    """
    check_is_fitted(model)
    if not (name.isidentifier() and name.isascii() and name[0].isalpha()):
        raise ValueError(f"`name` must be a letter, then letters, digits and underscores, got {name!r}.")
    found = {_this_platform(): native.library()} if libraries is None else dict(libraries)
    unknown = set(found) - set(_ENDINGS)
    if unknown or not found:
        raise ValueError(f"`libraries` must name platforms of {', '.join(_ENDINGS)}, got {', '.join(sorted(unknown)) or 'none'}.")
    start = np.median(model.model_.X, axis=0)
    description = _describe(model.model_, name, start)
    with tempfile.TemporaryDirectory() as folder:
        model.save(saved := Path(folder) / "model.stitch")
        with replacing(Path(path)) as made, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as unit:
            unit.writestr("modelDescription.xml", description)
            unit.write(saved, "resources/model.stitch")
            unit.writestr("resources/start.bin", start.astype("<f8").tobytes())
            for system, library in found.items():
                unit.write(library, f"binaries/{system}/{name}{_ENDINGS[system]}")
            for source in (*_SOURCES, "stitchwork.h"):
                unit.write(Path(native.include_dir()) / source, f"sources/{source}")


def _this_platform() -> str:
    """The name that FMI has for this machine."""
    arm = platform.machine().lower() in ("arm64", "aarch64")
    system = {"win32": "win64", "darwin": "darwin64"}.get(sys.platform, "linux64")
    return {"linux64": "aarch64-linux", "darwin64": "aarch64-darwin"}.get(system, system) if arm else system


def _describe(model: StitchedModel, name: str, start: np.ndarray) -> bytes:
    """The file modelDescription.xml."""
    features, targets = model.feature_names, model.target_names
    twice = {*features} & {*targets}
    if twice:
        raise ValueError(f"`model` has features and outputs of the same name: {', '.join(sorted(twice))}. Rename the columns.")
    guid = uuid.uuid5(uuid.NAMESPACE_URL, f"stitchwork/{name}/{features}/{targets}/{start.tobytes().hex()}")
    facts = {"fmiVersion": "2.0", "modelName": name, "guid": f"{{{guid}}}", "numberOfEventIndicators": "0"}
    root = Element("fmiModelDescription", facts | {"generationTool": f"stitchwork {stitchwork.__version__}"})
    smooth = str(model.smoothness >= 1).lower()
    for interface in _INTERFACES:
        element = SubElement(root, interface, modelIdentifier=name, providesDirectionalDerivative=smooth)
        if interface == "CoSimulation":
            element.set("canHandleVariableCommunicationStepSize", "true")
        sources = SubElement(element, "SourceFiles")
        for source in _SOURCES:
            SubElement(sources, "File", name=source)
    _add_variables(root, model, start)
    structure = SubElement(root, "ModelStructure")
    inputs = " ".join(str(k + 1) for k in range(len(features)))
    for kind in ("Outputs", "InitialUnknowns"):
        element = SubElement(structure, kind)
        for o in range(len(targets)):
            SubElement(element, "Unknown", index=str(len(features) + o + 1), dependencies=inputs)
    indent(root)
    return bytes(tostring(root, encoding="utf-8", xml_declaration=True))


def _add_variables(root: Element, model: StitchedModel, start: np.ndarray) -> None:
    """Inputs and outputs with their units, numbered in their order."""
    features, targets = model.feature_names, model.target_names
    units = {column: facts["units"] for column, facts in model.origin.attributes.items() if facts.get("units")}
    if units:
        definitions = SubElement(root, "UnitDefinitions")
        for unit in dict.fromkeys(units.values()):
            SubElement(definitions, "Unit", name=unit)
    variables = SubElement(root, "ModelVariables")
    for number, column in enumerate([*features, *targets]):
        about = {"name": column, "valueReference": str(number), "variability": "continuous"}
        known = {"unit": units[column]} if column in units else {}
        if number < len(features):
            element = SubElement(variables, "ScalarVariable", about | {"causality": "input"})
            SubElement(element, "Real", known | {"start": repr(float(start[number]))})
        else:
            element = SubElement(variables, "ScalarVariable", about | {"causality": "output", "initial": "calculated"})
            SubElement(element, "Real", known)
