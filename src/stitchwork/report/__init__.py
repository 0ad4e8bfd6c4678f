"""A fitted model to look at in a browser: one self-contained page, or a page with a live model behind it.

Both show slices of the function with its derivatives, coverage and leave-one-out errors, and for every point the regions that
answer there. `write_report` puts the model itself into the page, which asks it by the compiled library as WebAssembly; `explore`
serves the same page on this machine alone and answers by `StitchedRegressor`.
"""

from ._page import write_report
from ._server import explore

__all__ = ["explore", "write_report"]
