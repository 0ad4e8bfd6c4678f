"""The stitched function as a PyTorch module.

Radial functions are Taylor polynomials about s itself, with derivatives from formulas: value and derivatives are exact, and all of
it is plain tensor code. A `torch.autograd.Function` would not do: with a ``jvp`` of its own `torch.compile` refuses it, and forward
over forward mode loses its second derivative (PyTorch 2.13).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from ..local.radial import Profile
from ._evaluate import Framework, evaluate
from ._tables import Arrays, Tables


class StitchedModule(torch.nn.Module):
    """A stitched model; see `stitchwork.export.to_torch`. Its tables are buffers in submodules ``space`` and ``groups``."""

    def __init__(self, tables: Tables):
        super().__init__()
        self.design = tables.design
        self.space: Any = _Table(tables.space)
        self.groups: Any = torch.nn.ModuleList([_Table(arrays) for arrays in tables.groups])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Values at ``x`` (..., d), in the precision of the module: (...,) or (..., t)."""
        # The compiler cannot ask for the mode, and a compiled function may be differentiated later.
        values_only = not torch.compiler.is_compiling() and torch.is_inference_mode_enabled()
        framework = Framework(torch, partial(_radial, order=0 if values_only else self.design.order), _smallest)
        groups = [table.arrays() for table in self.groups]
        return evaluate(framework, self.design, self.space.arrays(), groups, x.to(self.space.A.dtype))


class _Table(torch.nn.Module):
    """Arrays as buffers."""

    def __init__(self, arrays: Arrays):
        super().__init__()
        for name, array in arrays.items():
            self.register_buffer(name, torch.tensor(array))

    def arrays(self) -> dict[str, Any]:
        """The buffers by name."""
        return dict(self.named_buffers())


def _radial(profile: Profile, s: torch.Tensor, k: int = 0, *, order: int) -> torch.Tensor:
    """Σ_i (Dⁱg)(s₀) / i! ((s - s₀) / 2)ⁱ of g = Dᵏf, s₀ the number s, a constant: the value and derivatives up to ``order``."""
    s0 = s.detach()
    terms = profile.terms(torch, s0, order + k)[k:]
    f, half = terms[-1], 0.5 * (s - s0)
    for i in range(order, 0, -1):
        f = terms[i - 1] + f * (half / i)
    return f


def _smallest(a: torch.Tensor, k: int) -> torch.Tensor:
    return torch.topk(a.detach().float(), k, dim=-1, largest=False, sorted=False).indices
