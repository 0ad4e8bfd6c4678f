"""One region: radial functions, polynomials, the block system, local models fitted and evaluated in stacks (paper, section 4)."""
