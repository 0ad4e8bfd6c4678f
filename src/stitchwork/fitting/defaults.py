"""Every constant of the default, with its reason and the figure behind it.

Figures are RMSE on held-out data unless said otherwise; docs/decisions.md tells how they were measured. "Log error" is the log of a
mean squared error, so that 0.02 is one per cent of the root mean squared error.
"""

from __future__ import annotations

from math import comb

import numpy as np

# The paper's settings.
PAPER_BANDWIDTHS = (0.25, 0.5, 1.0, 2.0, 5.0)
PAPER_RIDGES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
RESPONSE_RIDGE = 1e-4  # "about 0.01% of the average response value" (paper, section 3.1)
HELD_OUT = 0.2  # share of the points that the paper's search is judged on

# What a search tries. Without noise, a ridge of 1e-14 lowers the error of the paper's 2-D test from 0.02 to 4e-5; noisy data need
# large ridges.
RIDGES = tuple(10.0**-k for k in range(-1, 15))
FIXED_BANDWIDTH, FIXED_RIDGE = 1.0, 1e-6  # where nothing is to be chosen
BANDWIDTHS = {"multiquadric": (0.01, 0.1, 1.0)}  # where the search starts, by kernel; the others start at:
# The mean distance or more: a narrow kernel falls back to a constant away from the points, and rough data are served by rough
# kernels. Errors on three windows of the satellite field, relative to the best candidate: 0.99, 1.08, 1.11; with narrower
# bandwidths 1.09, 1.32, 1.32.
OTHER_BANDWIDTHS = (1.0, 4.0)
LEFT_OUT_KERNELS = ("wendland", "matern32", "matern72")  # not in "auto": the others do as well, and every kernel costs a search
PROMISED_SMOOTHNESS = 2  # of the prediction, where nothing else is asked for
# Degrees above two oscillate beyond the points: without them, the errors on 32 fields, fourteen of them with lines, blocks or
# curves held out, are 0.89 times as large (0.12 and 0.24 to 1.95 on flamelets, 0.37 to 1.10 elsewhere). Points on a sheet in space
# are queried at rows like their own: there, degree three makes errors 0.80 times as large on 30 random splits of 9 sets (0.14 to
# 5.3) and 0.69 times on five synthetic surfaces with three functions each (0.08 to 1.9).
DEGREES = (-1, 0, 1, 2)
SHEET_DEGREES = (*DEGREES, 3)
POLYNOMIAL_SHARE = 1 / 3  # greatest number of monomials, as a share of a region's points: most points are left to the kernel

# Regions. Tables are noisy and sparse, so their regions are as large as a bound on n h², and with it on the time, allows. Errors
# relative to a tenth of that bound: 0.67 (kin40k), 0.90 (pol), 0.98 (sml), 0.99 (pumadyn32nm), 1.00 (protein, keggdirected,
# skillcraft).
REGION_SIZE, LARGEST_REGION, MOST_WORK = 100, 400, 4e9
# Regions of fields are enlarged, too, if their effective degrees of freedom are less than this share of their points: the rest is
# noise. Errors on smooth functions with noise, relative to 100 points: 0.67 to 1.03; rough fields use 0.32 and more.
NOISY_DOF = 0.3
# With slopes, a third of the locations is enough in the plane, unless the effective degrees of freedom are less than this share of
# the equations: without noise they are 0.97 and more, with noise of 2 to 50 % at most 0.88. Then regions have as many locations as
# for responses alone, up to so many equations.
EXACT_DOF, MOST_EQUATIONS = 0.95, 600
# How far the log error with twice the points may exceed that with 100, at the same locations and with one kernel; at a front it is
# more. 16 regions determine it to 0.02. With a smaller tolerance, regions of the noisy 2-D test stay small in four of twelve copies
# (error 0.57 instead of 0.39).
SIZE_TOLERANCE = 0.1
# How far the log error with h points spread over a large region may exceed that with the h nearest points; beyond it, a part does
# not represent the large region.
PART_TOLERANCE = 0.5
MANY_REGIONS = 4.0  # times the regions of the paper's cover: 2-D error 4.9e-5 with that cover, 1.7e-5 with four times as many
DIMENSION_SAMPLE = 256  # points at which the intrinsic dimension of the data is measured,
DIMENSION_POINTS = 16  # and times h, points in which their neighbours are sought: so lines of a survey are part of a plane
SUPPORT_MARGIN = 1.3  # radius of the support, relative to that of the covered points: overlap costs time to fit, not to predict

# The score of a region. Leave-one-out residuals are weighted by the region's weight at the point, plus this:
LEAST_WEIGHT = 1e-3
NEGLIGIBLE = 1e-8  # errors below this share of the standard deviation count as none (combustion: half of the regions)
JITTER = 1e-6  # rounding error of a prediction, as a share of the standard deviation, beyond which a candidate is penalised
# A member imitates a query without the neighbours that the query does not have. A neighbour of the member is kept if, shifted to
# the query, it lies near a point: within the first share of its distance from the member. It is also kept if that distance is
# more than the second number times the query's distance from its nearest point.
MATCH_TOLERANCE, MATCHED_WITHIN = 0.5, 4.0
ASKED_STEPS = 2  # ridges on either side of the best one by leave-one-out at which questions are imitated
# Cap on a region's squared error in the pooled score, in units of the median: one gross error must not decide for all regions.
# 2-D test of 8,000 points 2.3e-5, with 1e5 1.3e-4; combustion, four splits, 3.2e-7 to 1.9e-6, without a cap 6.3e-7 to 2.8e-5.
MOST_ERROR = 1e3
LEAST_GAIN = 0.02  # decrease of the log error for which another shape is kept: one per cent

# The search, on a sample of the regions, and the choice of each region together with its neighbours.
SCREENED_POINTS, LEAST_SCREENED = 3200, 4  # points in all sampled regions together, and the fewest regions
MANY_SHAPES, FIRST_SHARE = 8, 0.25  # so many shapes or more are first scored in a share of these regions,
DROPPED_BEYOND = 2.0  # and those are dropped whose log error exceeds the best by more: errors 2.7 times as large
KEPT_SHAPES = 3
NOISY_RIDGE = 1e-6  # for few points with slopes: a larger ridge means noise, and then the weight of slopes matters
SLOPE_WEIGHTS = (1e-4, 1e-2, 1e2)  # of slopes per radius, in units of those of responses, that are tried beside one
# Regions that are scored: at least the first number, then a share, at most the last number; their neighbours share the choice. The
# maximum is scaled by cost, so that fewer large regions are scored than 100-point regions.
SCORED_REGIONS, SCORED_SHARE, MOST_SCORED = 100, 0.25, 1000
MOST_ASKED = 4096  # regions whose volumes are computed before some of them are drawn
POOLED_REGIONS = 10  # neighbours whose scores are averaged: kin40k 0.161 alone, 0.080 with ten
CHOICE_MARGIN = 2.0  # standard errors by which a neighbourhood must differ to have a choice of its own
WHOLE_SHARE, LEAST_JUDGES, JUDGES = 1 / 8, 8, 24  # regions judged on all points after a search on parts: share, least, most

# The metric, learned from the gradients of regions around some points: kin40k 0.192 → 0.092.
METRIC_POINTS, MOST_METRIC_POINTS = 800, 6400  # points in all sampled regions together: per feature, and at most
METRIC_REACH = 0.65  # a region is judged, and its gradients are taken, within this share of its radius
FEW_POINTS = 30  # too few to learn from
METRIC_ROUNDS = 3
METRIC_GAIN = 0.2  # log error: a metric that is harder to understand must lower the error by a tenth
FLAT = 1e-10  # relative extent below which the points are flat in a direction
CONSTANT = 1e-13  # a feature whose extent is a smaller share of its size is constant, but for rounding
METRIC_FLOOR = 1e-4  # least relative eigenvalue: no direction is forgotten
METRIC_KERNEL, METRIC_BANDWIDTHS = "matern52", (1.0, 4.0)  # metrics are tried with one kernel, unless the user named others
LIKELY_METRIC_ROWS = 300  # rows of a large table from which length scales are estimated

# Few points: one region holds them all.
FIELD_DIMENSION = 3  # up to so many features, data are a field, queried anywhere; others are tables, queried at rows like theirs
WHOLE_FIELD, WHOLE_TABLE = 1000, 1500  # points of a field and rows of a table that are one region
WHOLE_SLOPES = 2000  # equations of a table with slopes that are one region: 200 runs of eight features
WHOLE_KERNELS = ("gaussian", "matern52", "soft-exponential")
WHOLE_DEGREES = (0, 1, 2)
LIKELY_START = ((0.5, 1e-3), (2.0, 1e-6), (8.0, 1e-6))  # starts: length scale in √d standard deviations, and ridge
TIED_SCALES = (0.25, 0.5, 1.0, 2.0, 4.0)  # length scales in √d standard deviations, of models with one for all features
LIKELY_ROWS, LIKELY_STEPS = 200, 30  # rows on which all models are tried, and steps of the search from each start
LIKELY_MORE_ROWS = 600  # then the best degree of each kernel on so many rows,
LIKELY_MODELS, LIKELY_WORK = 3, 4e9  # and so many models on all rows: n³ times their steps
LEAST_NOISE = 100.0  # least ridge of the likelihood, in n ε: rounding makes about so much of a kernel matrix
# Prior of the log scales about their mean, of density (1 + x²)^-½: with few rows the scales stay close together, many rows separate
# them. 39 generated sets of 10 to 29 rows, errors relative to the best baseline: 1.14 (Gaussian prior of variance 1: 1.12, of
# variance 10: 1.48); twelve simulations of 50 runs: 0.0306 (0.0317, 0.0307).
SCALE_PRIOR = 1.0
LEAST_SHARE = 0.05  # of a model in the average
LEFT_NOISE = 0.5  # share of the variance of known errors that a model must leave unexplained
# Several outputs share models if this makes the leave-one-out error of each at most so many times that with its own models. Noise
# hides much of the loss: for two outputs of different features, 100 and 200 rows with noise, shared models make leave-one-out
# errors 1.02 to 1.08 times as large, but errors of the function 1.3 to 2.3 times; for outputs of the same features at most 1.022
# and 1.04. With more outputs than the second number, models are always shared: separate ones cost a search each.
SHARED_TOLERANCE, MOST_SEPARATE = 1.02, 16

# Tables of many regions: close candidates cannot be told apart, so that models are averaged instead of chosen. Each kernel has
# length scales of its own likelihood, and two metrics are used where none is clearly better (protein 0.961 of one, sml 0.963).
AVERAGED_KERNELS = ("soft-exponential", "matern52")
AVERAGED_DEGREES = (0, 1)
AVERAGED_BANDWIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
SEARCHED_PART = 400  # larger regions are searched in parts of about so many points
# A priori standard deviation of a share about equal ones. Real tables of 15 to 102 rows, ratio to the best of six baselines:
# 1.156, with 0.2 1.176; twelve simulations of 30 and 60 runs, relative to 0.2: 1.02 and 1.00.
SHARE_DEVIATION = 0.1

# The background.
THINNING = 4  # each sample has a quarter of the points of the one before
# Wider supports of the regions, used where no smaller support reaches, before a thinner sample takes over: slightly wider for gaps
# between points (2-D without noise 1.2e-5, without that level 6.3e-5), then wider for holes (satellite field 1.35, without that
# level 1.46).
GAP_REACH, HOLE_REACH = 1.25, 2.0
COARSE_POINTS = 1 << 15  # of the sample that the background is made of where data are in parts

# Models that grow.
FEW_REGIONS = 5  # times h points: with fewer, choosing again costs little, and the earlier choice says little
# Growth since the last choice of hyperparameters at which they are chosen again. 2-D test, doubled from 10⁴ points in five orders:
# 8.5e-5 to 1.1e-4 with the old choice, 1.1e-5 to 2.4e-5 with a new one.
REFIT_GROWTH = 2
SAMPLED_NEIGHBOURS = 2 * THINNING  # a point joins a thinner sample if none of so many nearest points is in it
POLYNOMIAL_AGE = 0.01  # share of the points that may change before the global polynomial and the medians are recomputed
CHECKED_POINTS = 8  # new points compared with their region, at two eigenvalue problems each; more if their errors look stale
REMEMBERED_ERRORS = 200  # length of the running mean of these errors
LEAST_JUDGED, STALE = 20, 2.0  # warn from so many compared points on, if errors exceed so many times the expected ones
MOST_SURPRISE = 100.0  # cap on the contribution of one point to the running mean

# Where to measure next, decided on a steep ring (tanh of width 0.05), 400 points: with κ 0.3 and 3 neighbours RMSE 0.011, κ 0.1
# 0.013, κ 0 0.016, 6 neighbours 0.013, squared distances 0.018; 400 random points 0.073.
SUGGEST_NEIGHBOURS = 3  # neighbours whose leave-one-out errors predict that of a candidate
CHANGE_WEIGHT = 0.3  # κ: share of the change from the nearest point that may be wrong
LEAST_CANDIDATES, LOCAL_STEP = 2048, 1.0
SUGGEST_REGIONS = 1500  # regions whose leave-one-out errors are computed, at most: with more, a sample represents the others


def region_size(n: int, d: int) -> int:
    """100 points in up to three dimensions; beyond them all of a small table, or as many as time allows."""
    if d <= FIELD_DIMENSION:
        return REGION_SIZE
    return n if n <= WHOLE_TABLE else large_region(n)


def large_region(n: int) -> int:
    """The largest region for which n h² stays below the bound: the cost of n / h regions at h³ each."""
    return int(np.clip(np.sqrt(MOST_WORK / n), REGION_SIZE, LARGEST_REGION))


def degrees(h: int, d: int, every: tuple[int, ...] = DEGREES) -> tuple[int, ...]:
    """No polynomial, or the degrees of ``every`` that leave most of a region's ``h`` points to the kernel."""
    return tuple(degree for degree in every if comb(degree + d, d) <= max(int(h * POLYNOMIAL_SHARE), 1))


def whole_degrees(n: int, d: int, given: tuple[int, ...]) -> tuple[int, ...]:
    """Degrees of models of few points: those ``given``, or up to two as far as they leave most points to the kernel."""
    return given or tuple(degree for degree in WHOLE_DEGREES if comb(degree + d, d) <= max(int(n * POLYNOMIAL_SHARE), 1))
