"""Every number that the default settles for the user, with its reason and the figure behind it.

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
OTHER_BANDWIDTHS = (0.25, 1.0, 4.0)
LEFT_OUT_KERNELS = ("wendland", "matern72", "soft-exponential")  # of "auto": others do as well, and every kernel costs a search
PROMISED_SMOOTHNESS = 2  # of the prediction, where nothing else is asked for
DEGREES = (-1, 0, 1, 2, 3, 4)
POLYNOMIAL_SHARE = 1 / 3  # most monomials in a region, as a share of its points: most of them are left to the kernel

# Regions. Tables are noisy and sparse, so that theirs are large while n h², and with it the time, stays below a bound: errors
# relative to a tenth of it are 0.67 (kin40k), 0.90 (pol), 0.98 (sml), 0.99 (pumadyn32nm), 1.00 (protein, keggdirected, skillcraft).
REGION_SIZE, LARGEST_REGION, MOST_WORK = 100, 400, 4e9
# So are those of fields whose regions use less than this share of their points' freedom, the rest being noise. Smooth functions
# with noise, relative to 100 points: 0.67 to 1.03; rough fields use 0.32 and more.
FREEDOM = 0.3
# Log error that twice the points may have above that of 100, in the same places and with one kernel: at a front it is more. With
# less than this, which 16 regions tell to 0.02, the noisy 2-D test stays small in four of twelve copies (0.57 instead of 0.39).
BEARABLE = 0.1
RESOLVED = 0.5  # log error that a part of a large region's points may have above that of all, or it does not show what they do
MANY_REGIONS = 4.0  # times the regions of the paper's cover: 2-D 4.9e-5 with its own, 1.7e-5 with four times as many
DIMENSION_SAMPLE = 256  # points that tell the dimension of the data
SPOKEN = 1.3  # how far beyond the points that it covers a region speaks: so overlap costs time to fit, not to predict

# The score of a region: points count by the weight with which it speaks there, and a little more, for those with few within reach.
LEAST_WEIGHT = 1e-3
NEGLIGIBLE = 1e-8  # errors below this share of the response's deviation count as none (combustion: half of the regions)
JITTER = 1e-6  # share of the deviation that rounding may make of a prediction: beyond it a candidate is penalised

# One score for many regions, between the mean of logs (the many easy ones decide) and the log of means (a few hard ones do).
HARDNESS = 0.25  # power of the squared errors that is averaged
NOTICEABLE = 0.02  # log error for which another shape is kept, and that a trusted rank may cost: one per cent

# The search, on a sample of the regions, and the choice of each region together with its neighbours.
SCREENED_POINTS = 3200  # in all regions of the sample; with a quarter of them, the order of the rows decides
LEAST_SCREENED = 4
MANY_SHAPES, GLANCE = 8, 0.25  # so many shapes are first looked at in a share of these regions,
HOPELESS = 2.0  # and those dropped whose log error is larger by this much than the best: errors 2.7 times as large
KEPT_SHAPES = 3
# So many regions are scored, a share of them, or at most so many: their neighbours share the choice. With more, neighbourhoods
# shrink and take what chance offers: Britain 9.28 with a quarter of its 32,000 regions, 8.87 with 4,000, 8.91 with 1,000.
# Of large regions fewer: so many of 100 points take as long. In tables 100 or 500 make no difference.
SCORED_REGIONS, SCORED_SHARE, MOST_SCORED = 100, 0.25, 1000
POOLED_REGIONS = 10  # kin40k 0.161 alone, 0.080 with ten
CLEARLY = 2.0  # standard errors by which a neighbourhood must speak for a choice of its own
RIDGE_STEPS = 3  # local ridges are at most so many steps of the grid, powers of ten, from the common one
WHOLE_SHARE = 1 / 8  # of the regions that were searched in part tell what serves whole ones
ALSO_SMOOTH = 0.1  # log error above the best of parts with which the best analytic kernel stays a candidate for whole regions
JUDGES = 24  # regions on which a change of all of them is judged

# Directions in which the points of a region hardly extend are left out of its polynomial, as across a ship's track.
UNCERTAIN_SLOPE, LEAST_TRUST = 3.0, 0.3

# Regions at holes take the shape that best foretells a side of their points, left out together, if it costs little between them:
# satellite field 1.37 (by leave-one-out alone 2.8), hole in a noisy field 0.024 (thin plates on 100 neighbours 0.064).
CALM_SHAPES = (("multiquadric", 0, 0.01), ("multiquadric", 0, 0.1))  # nearly linear splines, asked beside what was chosen
CALM_COST = 0.3  # log error that it may cost between the points, times the share of freedom in use: 16 per cent without noise
CAP = 0.2  # share of a region's points on one side that are left out together
LEAST_JUDGES = 8  # regions below which nothing can be told: at the two ends of a curve there are fewer at holes
EMPTY = 0.02  # share of empty space that makes a region answer for a hole
# Islands of points in a hole answer for it alone, and no side of theirs that is left out tells how: they take the calmest shape
# unasked. Satellite field moved by 1e-13, eight times: 1.34 to 1.59, without 1.36 to 4.43.
ISLAND = 0.5  # share of the usual distance of the eighth neighbour, in radii, and inverse of that of the radius
NEAR_NEIGHBOUR, NEAR = 8, 1.5  # a place is empty beyond 1.5 times the distance of the eighth neighbour: 1e-4 of random points are

# Points in groups. A search on a sample misses the few places where curves are far apart, so that splines that are calm there stay
# candidates, and as many regions as ever are scored: whole flamelets held out 7.6e-6, a quarter of them 1.2e-5, no splines 7e-5.
SPLINES_BETWEEN = (("quintic", 2), ("quintic", 3))

# Curves that were found. They are looked for if a share of the points lies on some (flamelets 0.36 to 0.54, ship tracks 0.5, flight
# lines 0.56 and 0.95; random points in the plane 0.09), and count in regions where most points do, if that share of regions is such
# (a satellite's passes in longitude and latitude: 0.2 to 0.3 of the points, no region).
MANY_CURVES, ON_CURVES = 0.2, 0.5
# Regions on curves double until so many of their points lie between other curves, as some regions tell: of 100 points, flamelets,
# ship tracks and flight lines have 0.63 to 0.78; ten even tracks 0.31, so that regions have 200, and errors of 0.005, not 0.07.
TOLD, CURVE_REGIONS = 0.5, 64
# The share of the log error between curves in a region's score. With 1, ¾, ½, 0: whole flamelets held out 7.6e-6, 5.8e-6, 5.5e-6,
# 9.2e-5; magnetic lines with ¾, ½, 0: 44.0, 46.0, 44.6, at random 9.8, 9.7, 10.3; flamelets at random, six splits, 1.5, 1.3, 1.
BETWEEN = 0.5

# The metric, learned from the gradients of regions around some points: kin40k 0.192 → 0.092.
METRIC_POINTS, MOST_METRIC_POINTS = 800, 6400  # in all regions together: for each feature, and at most
METRIC_REACH = 0.65  # a region is judged, and its gradients are taken, within this share of its radius
FEW_POINTS = 30  # too few to learn from
METRIC_ROUNDS = 3
METRIC_GAIN = 0.2  # log error: a metric that is harder to understand must lower the error by a tenth
CONSTANT = 1e-13  # a feature whose extent is a smaller share of its size is constant, but for rounding
METRIC_FLOOR = 1e-4  # least relative eigenvalue: no direction is forgotten
METRIC_KERNEL, METRIC_BANDWIDTHS = "matern52", (1.0, 4.0)  # metrics are tried with one kernel, unless the user named others
LIKELY_ROWS, LIKELY_STEPS = 300, 40  # rows and steps of the search for length scales by likelihood
# Rows of a table that is one region: pendulum 0.95 of the error with 300, 800 rows of eight other tables 0.95; sml, in regions of
# about 330 rows, 1.17, so that there it stays at 300.
LIKELY_ROWS_WHOLE = 600
SCALE_PRIOR = 1.0  # inverse variance of the log scales about their mean

# Tables: in more than three dimensions close candidates cannot be told apart, so that models are averaged instead of chosen. Seven
# tables of up to 1,500 rows, relative to the best of four peers: 1.02, the best single kernel and metric 1.05, choosing both 1.07.
FIELD_DIMENSION = 3  # up to which data are a field: a region has one model, and holes are looked for
WHOLE_TABLE = 1500  # rows of a table that are one region
# Each kernel has length scales of its own likelihood (those of Matérn-5/2 for both: 1.01 on five tables, 1.02 on parts of eight
# others), and larger tables also use two metrics where none is clearly better (protein 0.961 of one, sml 0.963, pol 0.969).
AVERAGED_KERNELS = ("soft-exponential", "matern52")
AVERAGED_DEGREES = (0, 1)
AVERAGED_BANDWIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
SEARCHED_PART = 400  # larger regions are searched in parts of about so many points
SHRINKAGE = 0.1  # of the shares towards equal ones, relative to the least squared error

# The background.
THINNING = 4  # each sample has a quarter of the points of the one before
# How far regions speak where none is nearer, before a thinner sample takes over: in gaps between points barely beyond their own
# (2-D without noise 1.2e-5, without that level 6.3e-5), then farther, in holes (satellite field 1.35, without that level 1.46).
BARELY, WIDER = 1.25, 2.0
COARSE_POINTS = 1 << 15  # of the sample that the background is made of where data are in parts

# Models that grow.
FEW_REGIONS = 5  # times h points: below, choosing anew costs little, and what was chosen on so few says little
# Times the points on which was chosen: then it is chosen anew. 2-D test doubled from 10⁴ points in five orders: 8.5e-5 to 1.1e-4
# with the old choice, 1.1e-5 to 2.4e-5 with a new one.
OUTGROWN = 2
SAMPLED_NEIGHBOURS = 2 * THINNING  # a point joins a thinner sample if so many of its nearest points have none in it
POLYNOMIAL_AGE = 0.01  # share of the points that may change before the polynomial behind everything, and the medians, are made anew
GLANCED_AT = 8  # new points whose errors are compared with those of a region, each two eigenvalue problems; more if that alarms
REMEMBERED = 200  # of them tell whether the choice is stale
LEAST_JUDGED, STALE = 20, 2.0  # so many of them with errors so many times what was expected: a warning
MOST_SURPRISE = 100.0  # of one point

# Where to measure next, decided on a steep ring (tanh of width 0.05), 400 points: with κ 0.3 and 3 neighbours RMSE 0.011, κ 0.1
# 0.013, κ 0 0.016, 6 neighbours 0.013, squared distances 0.018; 400 random points 0.073.
TELLING_NEIGHBOURS = 3  # whose leave-one-out errors foretell that of a place
DOUBTED_CHANGE = 0.3  # κ: share of the change from the nearest point that may be wrong
LEAST_CANDIDATES, LOCAL_STEP = 2048, 1.0


def region_size(n: int, d: int) -> int:
    """100 points in up to three dimensions; beyond them all of a small table, or as many as time allows."""
    if d <= FIELD_DIMENSION:
        return REGION_SIZE
    return n if n <= WHOLE_TABLE else large_region(n)


def large_region(n: int) -> int:
    """The most points of a region for which n h² stays below the bound: a fit of h³ a region, n / h of them, takes so long."""
    return int(np.clip(np.sqrt(MOST_WORK / n), REGION_SIZE, LARGEST_REGION))


def degrees(h: int, d: int) -> tuple[int, ...]:
    """No polynomial, or a degree that leaves most of a region's ``h`` points to the kernel."""
    return tuple(degree for degree in DEGREES if comb(degree + d, d) <= max(int(h * POLYNOMIAL_SHARE), 1))
