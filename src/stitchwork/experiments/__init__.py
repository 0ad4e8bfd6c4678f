"""The paper's evaluation: every experiment, every competitor, one command (``stitchwork reproduce``).

An experiment is a module with a name, a title, ``parts(quick)``, which lists the pieces that are run and stored one by one, and
``section(results)``, which shows them. `_methods` holds the competitors and their tuning, `_store` the results, `_report` the page.
"""

from ._run import EXPERIMENTS, experiment, reproduce

__all__ = ["EXPERIMENTS", "experiment", "reproduce"]
