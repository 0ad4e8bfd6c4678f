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

# What a search tries. Without noise a ridge of 1e-14 takes the paper's 2-D test from 0.02 to 4e-5; noise takes large ones.
RIDGES = tuple(10.0**-k for k in range(-1, 15))
FIXED_BANDWIDTH, FIXED_RIDGE = 1.0, 1e-6  # where nothing is to be chosen
BANDWIDTHS = {"multiquadric": (0.01, 0.1, 1.0)}  # where the search of a kernel starts; of others:
# Not less than the mean distance: a narrow kernel falls back to a constant beyond the points, and rough data have rough kernels.
# Three windows of the satellite field, relative to the best candidate: 0.99, 1.08, 1.11; with narrower ones 1.09, 1.32, 1.32.
OTHER_BANDWIDTHS = (1.0, 4.0)
LEFT_OUT_KERNELS = ("wendland", "matern32", "matern72")  # of "auto": others do as well, and every kernel costs a search
PROMISED_SMOOTHNESS = 2  # of the prediction, where nothing else is asked for
# Powers above the second swing beyond the points: without them 32 fields, of which fourteen with lines, blocks or curves held out,
# have 0.89 of the errors (0.12 and 0.24 to 1.95 on flamelets, 0.37 to 1.10 elsewhere). A sheet in space is asked for rows like its
# own: there, 30 random splits of 9 sets have 0.80 of the errors with the third (0.14 to 5.3).
DEGREES = (-1, 0, 1, 2)
SHEET_DEGREES = (*DEGREES, 3)
POLYNOMIAL_SHARE = 1 / 3  # most monomials in a region, as a share of its points: most of them are left to the kernel

# Regions. Tables are noisy and sparse, so that theirs are large while n h², and with it the time, stays below a bound: errors
# relative to a tenth of it are 0.67 (kin40k), 0.90 (pol), 0.98 (sml), 0.99 (pumadyn32nm), 1.00 (protein, keggdirected, skillcraft).
REGION_SIZE, LARGEST_REGION, MOST_WORK = 100, 400, 4e9
# So are those of fields whose regions use less than this share of their points as degrees of freedom, the rest being noise. Smooth
# functions with noise, relative to 100 points: 0.67 to 1.03; rough fields use 0.32 and more.
NOISY_DOF = 0.3
# With slopes a third of the locations do in the plane, unless regions use less than this share of their equations: without noise
# they use 0.97 and more, with noise of 2 to 50 % at most 0.88. Then as many as responses alone have, up to so many equations.
EXACT_DOF, MOST_EQUATIONS = 0.95, 600
# Log error that twice the points may have above that of 100, in the same places and with one kernel: at a front it is more. With
# less than this, which 16 regions tell to 0.02, the noisy 2-D test stays small in four of twelve copies (0.57 instead of 0.39).
SIZE_TOLERANCE = 0.1
PART_TOLERANCE = (
    0.5  # log error that a part of a large region's points may have above that of all, or it does not show what they do
)
MANY_REGIONS = 4.0  # times the regions of the paper's cover: 2-D 4.9e-5 with its own, 1.7e-5 with four times as many
DIMENSION_SAMPLE = 256  # points whose neighbours tell the dimension of the data,
DIMENSION_POINTS = 16  # times h points among which they are: so lines of a survey are part of a plane
SUPPORT_MARGIN = 1.3  # how far beyond the points that it covers a region answers: so overlap costs time to fit, not to predict

# The score of a region. Points that are left out one by one count by the weight of the region at them, and a little more.
LEAST_WEIGHT = 1e-3
NEGLIGIBLE = 1e-8  # errors below this share of the response's deviation count as none (combustion: half of the regions)
JITTER = 1e-6  # share of the deviation that rounding may make of a prediction: beyond it a candidate is penalised
# What a query does not see: a point is alike if one lies within this share of its distance from where it would be, or beyond so
# many times the distance of the query's nearest point.
MATCH_TOLERANCE, MATCHED_WITHIN = 0.5, 4.0
ASKED_STEPS = 2  # ridges on either side of the best for single points at which a region is asked
# Most that a region counts for in the pooled score, in medians: a gross error must not choose for all. 2-D test of 8,000 points
# 2.3e-5, with 1e5 1.3e-4; combustion, four splits, 3.2e-7 to 1.9e-6, without a bound 6.3e-7 to 2.8e-5.
MOST_ERROR = 1e3
LEAST_GAIN = 0.02  # log error for which another shape is kept: one per cent

# The search, on a sample of the regions, and the choice of each region together with its neighbours.
SCREENED_POINTS, LEAST_SCREENED = 3200, 4  # in all regions of the sample, and the fewest regions
MANY_SHAPES, FIRST_SHARE = 8, 0.25  # so many shapes are first looked at in a share of these regions,
DROPPED_BEYOND = 2.0  # and those dropped whose log error is larger by this much than the best: errors 2.7 times as large
KEPT_SHAPES = 3
NOISY_RIDGE = 1e-6  # of few runs with slopes, above which there is noise, and the weight of slopes matters
SLOPE_WEIGHTS = (1e-4, 1e-2, 1e2)  # of slopes per radius, in units of those of responses, that are tried beside one
# So many regions are scored, a share of them, or at most so many: their neighbours share the choice. Of large regions fewer: counts
# are scaled to the cost of 100-point regions.
SCORED_REGIONS, SCORED_SHARE, MOST_SCORED = 100, 0.25, 1000
MOST_ASKED = 4096  # regions whose volumes are compared before some are drawn
POOLED_REGIONS = 10  # kin40k 0.161 alone, 0.080 with ten
CHOICE_MARGIN = 2.0  # standard errors by which a neighbourhood must differ to have a choice of its own
WHOLE_SHARE, LEAST_JUDGES, JUDGES = 1 / 8, 8, 24  # regions that tell what serves whole ones, after parts of them were searched

# The metric, learned from the gradients of regions around some points: kin40k 0.192 → 0.092.
METRIC_POINTS, MOST_METRIC_POINTS = 800, 6400  # in all regions together: for each feature, and at most
METRIC_REACH = 0.65  # a region is judged, and its gradients are taken, within this share of its radius
FEW_POINTS = 30  # too few to learn from
METRIC_ROUNDS = 3
METRIC_GAIN = 0.2  # log error: a metric that is harder to understand must lower the error by a tenth
FLAT = 1e-10  # relative extent of the points in a direction in which they do not extend
CONSTANT = 1e-13  # a feature whose extent is a smaller share of its size is constant, but for rounding
METRIC_FLOOR = 1e-4  # least relative eigenvalue: no direction is forgotten
METRIC_KERNEL, METRIC_BANDWIDTHS = "matern52", (1.0, 4.0)  # metrics are tried with one kernel, unless the user named others
LIKELY_METRIC_ROWS = 300  # rows of a large table that tell the length scales

# Few points: one region holds them all.
FIELD_DIMENSION = 3  # features up to which data are a field, which is asked anywhere; others are tables, asked for rows like theirs
WHOLE_FIELD, WHOLE_TABLE = 1000, 1500  # points of a field and rows of a table that are one region
WHOLE_SLOPES = 2000  # equations of a table with slopes that are one region: 200 runs of eight features
WHOLE_KERNELS = ("gaussian", "matern52", "soft-exponential")
WHOLE_DEGREES = (0, 1, 2)
LIKELY_START = ((0.5, 1e-3), (2.0, 1e-6), (8.0, 1e-6))  # length scales, in √d deviations, and ridges where the likelihood is begun
TIED_SCALES = (0.25, 0.5, 1.0, 2.0, 4.0)  # of models with one for all features, in √d deviations
LIKELY_ROWS, LIKELY_STEPS = 200, 30  # rows on which all models are tried, and steps of the search from each start
LIKELY_MORE_ROWS = 600  # then the best degree of each kernel on so many rows,
LIKELY_MODELS, LIKELY_WORK = 3, 4e9  # and so many models on all rows: n³ times their steps
LEAST_NOISE = 100.0  # least ridge of the likelihood, in n ε: rounding makes about so much of a kernel matrix
# The log scales have the density (1 + x²)^-½ about their mean: few rows draw them together, many tell them apart. 39 generated sets
# of 10 to 29 rows, ratio to the best baseline: 1.14 (Gaussian of variance 1: 1.12, of variance 10: 1.48); twelve simulations of 50
# runs: 0.0306 (0.0317, 0.0307).
SCALE_PRIOR = 1.0
LEAST_SHARE = 0.05  # of a model in the average
LEFT_NOISE = 0.5  # share of the variance of known errors that a model must leave unexplained
# Several outputs have common models if the leave-one-out error of each is at most so many times that of its own models. Noise hides
# much in it: two outputs of different features, 100 and 200 rows with noise, have common errors 1.02 to 1.08 times as large, but
# those of the function 1.3 to 2.3 times; outputs of the same features at most 1.022 and 1.04. More outputs than so many have common
# models anyway: models of their own cost a search each.
AS_GOOD, MOST_ALONE = 1.02, 16

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
# Supports of regions where no other is nearer, before a thinner sample takes over: in gaps between points barely beyond their own
# (2-D without noise 1.2e-5, without that level 6.3e-5), then farther, in holes (satellite field 1.35, without that level 1.46).
GAP_REACH, HOLE_REACH = 1.25, 2.0
COARSE_POINTS = 1 << 15  # of the sample that the background is made of where data are in parts

# Models that grow.
FEW_REGIONS = 5  # times h points: below, choosing anew costs little, and what was chosen on so few says little
# Times the points on which was chosen: then it is chosen anew. 2-D test doubled from 10⁴ points in five orders: 8.5e-5 to 1.1e-4
# with the old choice, 1.1e-5 to 2.4e-5 with a new one.
REFIT_GROWTH = 2
SAMPLED_NEIGHBOURS = 2 * THINNING  # a point joins a thinner sample if so many of its nearest points have none in it
POLYNOMIAL_AGE = 0.01  # share of the points that may change before the polynomial behind everything, and the medians, are made anew
CHECKED_POINTS = 8  # new points whose errors are compared with those of a region, each two eigenvalue problems; more if that alarms
REMEMBERED_ERRORS = 200  # of them tell whether the choice is stale
LEAST_JUDGED, STALE = 20, 2.0  # so many of them with errors so many times what was expected: a warning
MOST_SURPRISE = 100.0  # of one point

# Where to measure next, decided on a steep ring (tanh of width 0.05), 400 points: with κ 0.3 and 3 neighbours RMSE 0.011, κ 0.1
# 0.013, κ 0 0.016, 6 neighbours 0.013, squared distances 0.018; 400 random points 0.073.
SUGGEST_NEIGHBOURS = 3  # whose leave-one-out errors foretell that of a place
CHANGE_WEIGHT = 0.3  # κ: share of the change from the nearest point that may be wrong
LEAST_CANDIDATES, LOCAL_STEP = 2048, 1.0
SUGGEST_REGIONS = (
    1500  # whose leave-one-out errors are asked, at most: beyond it, one region in so many tells those of its neighbours
)


def region_size(n: int, d: int) -> int:
    """100 points in up to three dimensions; beyond them all of a small table, or as many as time allows."""
    if d <= FIELD_DIMENSION:
        return REGION_SIZE
    return n if n <= WHOLE_TABLE else large_region(n)


def large_region(n: int) -> int:
    """The most points of a region for which n h² stays below the bound: a fit of h³ a region, n / h of them, takes so long."""
    return int(np.clip(np.sqrt(MOST_WORK / n), REGION_SIZE, LARGEST_REGION))


def degrees(h: int, d: int, every: tuple[int, ...] = DEGREES) -> tuple[int, ...]:
    """No polynomial, or the degrees of ``every`` that leave most of a region's ``h`` points to the kernel."""
    return tuple(degree for degree in every if comb(degree + d, d) <= max(int(h * POLYNOMIAL_SHARE), 1))


def whole_degrees(n: int, d: int, given: tuple[int, ...]) -> tuple[int, ...]:
    """Degrees of models of few points: those ``given``, or up to two as far as they leave most points to the kernel."""
    return given or tuple(degree for degree in WHOLE_DEGREES if comb(degree + d, d) <= max(int(n * POLYNOMIAL_SHARE), 1))
