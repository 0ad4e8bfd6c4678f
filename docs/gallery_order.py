"""The order of the examples in the gallery: as one would read them."""

_ORDER = (
    "first_steps",
    "noisy_derivative",
    "how_sure",
    "samples",
    "holes_and_coverage",
    "growing",
    "ignition",
    "surrogate",
    "optimiser",
    "slopes",
    "property_table",
    "ode",
    "critical_points",
    "many_outputs",
    "globe",
    "strain_rate",
    "sphere",
    "learned_metric",
    "sample_weights",
    "pipeline",
    "save_and_load",
    "seams",
    "convergence",
    "own_local_models",
)


def reading_order(filename: str) -> tuple[int, str]:
    """A key to sort by; a file that is not listed comes last."""
    name = filename.removeprefix("plot_").removesuffix(".py")
    return (_ORDER.index(name) if name in _ORDER else len(_ORDER), name)
