"""Write `radial.json`: every radial function with D f = f'/r, D² f and D³ f, from its plain formula, differentiated in 60 digits.

    pip install mpmath && python tests/golden/make_radial.py

Nothing of the library is used, so that the file can judge every form of these functions, in any language.
"""

import json
from pathlib import Path

import mpmath as mp

mp.mp.dps = 60
RADII = ["0.001", "0.05", "0.3", "0.5", "0.77", "0.95", "0.999", "1.001", "1.3", "2.5"]


def wendland(ell, k):
    """Iᵏ (1 - r)₊^ell by its integral, normalised to 1 at 0: coefficients in powers of u = 1 - r."""
    c = {ell: mp.mpf(1)}
    for _ in range(k):
        raised = {}
        for power, value in c.items():  # ∫_r^1 t (1 - t)^power dt = u^(p+1) / (p+1) - u^(p+2) / (p+2)
            raised[power + 1] = raised.get(power + 1, 0) + value / (power + 1)
            raised[power + 2] = raised.get(power + 2, 0) - value / (power + 2)
        c = raised
    total = sum(c.values())
    return lambda r: sum(value * (1 - r) ** power for power, value in c.items()) / total if r < 1 else mp.mpf(0)


def matern(p):
    """Rasmussen and Williams 2006, equation 4.16."""
    nu = p + mp.mpf(1) / 2

    def f(r):
        x = mp.sqrt(2 * nu) * r
        terms = (mp.factorial(p + i) / (mp.factorial(i) * mp.factorial(p - i)) * (2 * x) ** (p - i) for i in range(p + 1))
        return mp.exp(-x) * mp.factorial(p) / mp.factorial(2 * p) * sum(terms)

    return f


FUNCTIONS = {
    "gaussian": lambda r: mp.exp(-r * r),
    "exponential": lambda r: mp.exp(-r),
    "soft-exponential": lambda r: mp.exp(mp.mpf("0.05") - mp.sqrt(r * r + mp.mpf("0.05") ** 2)),
    "matern32": matern(1),
    "matern52": matern(2),
    "matern72": matern(3),
    "multiquadric": lambda r: -mp.sqrt(1 + r * r),
    "linear": lambda r: -r,
    "thin-plate": lambda r: r * r * mp.log(r),
    "cubic": lambda r: r**3,
    "quintic": lambda r: -(r**5),
    "none": lambda r: mp.mpf(0),
    "wendland": wendland(4, 1),  # in five dimensions
    "truncated-gaussian": lambda r: mp.exp(-4 * r * r) if r < 1 else mp.mpf(0),
    "wendland-c0": wendland(2, 0),
    "wendland-c2": wendland(3, 1),
    "wendland-c4": wendland(4, 2),
    "wendland-c6": wendland(5, 3),
    "wendland-c12": wendland(8, 6),
    "wendland-c2-native": wendland(4, 1),  # in five dimensions
    "wendland-c4-native": wendland(5, 2),
}


def terms(f, r):
    """f, f'/r, (f'/r)'/r, ((f'/r)'/r)'/r."""
    first, second, third = mp.diff(f, r), mp.diff(f, r, 2), mp.diff(f, r, 3)
    return [f(r), first / r, (second - first / r) / r**2, (third - 3 * second / r + 3 * first / r**2) / r**3]


def main():
    """Write the file."""
    table = {name: [[float(value) for value in terms(f, mp.mpf(r))] for r in RADII] for name, f in FUNCTIONS.items()}
    content = {"dimension": 5, "squared_radii": [float(mp.mpf(r) ** 2) for r in RADII], "terms": table}
    Path(__file__).with_name("radial.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
