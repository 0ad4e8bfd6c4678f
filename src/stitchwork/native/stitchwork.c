/* A fitted model as a table: the file is mapped into memory, checked once, and then only read.
 *
 * In this order: arithmetic that compilers can vectorise · radial functions · polynomials · balls and who contains a query · bounds
 * · local models · the stitch · charts · questions · reading · contributions. The formulas are those of the Python modules
 * `local.radial`, `local.polynomial`, `model.lookup`, `local.blocks`, `model.stitch`, `model.bounds` and `model.description`, which
 * the tests compare this file with. Compile without -ffast-math: rounding by a large number, below, would be optimised away.
 */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200112L /* mmap */
#endif

#include "stitchwork.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if !defined(_WIN32) && !defined(__wasm__)
#define MAPPED_FILES
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#if defined(__GNUC__) && defined(__x86_64__) && !defined(ST_ONE_ENGINE)
#define ST_X86
#include <cpuid.h>
#endif

#ifdef __FAST_MATH__
#error "stitchwork.c needs exact rounding: compile it without -ffast-math"
#endif

#ifdef _MSC_VER
#define INLINE static __forceinline
#define restrict __restrict
#elif defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi" /* vectors are passed to inlined functions alone, which have no ABI */
#endif
#else
#define INLINE static inline
#endif

enum {
    LANES = 8,         /* loops run over so many numbers at once, whatever registers there are */
    BLOCK = 160,       /* points of a region that are worked on at once: 20 LANES, since compilers unroll 16 rounds completely */
    CHUNK = 1024,      /* queries that are, at most */
    FEW_FEATURES = 3,  /* up to which points, and derivatives of monomials with their zeros, are kept as they are used */
    AT_ONCE = 32,      /* queries of a region whose sums over its points are held at once */
    SORTED = 1 << 16,  /* queries that are sorted by place at once */
    PACKED = 1 << 28,  /* bytes up to which the points of regions are copied to where their coefficients are */
    MOST_TOGETHER = 8, /* levels of the same regions that are evaluated at once */
    MOST_LEVELS = 64,
    MOST_TURNS = 1024,
    MOST_ORDER = 50, /* k of the smoothest weight, C^2k */
    MOST_DEGREE = 100,
    MOST_FEATURES = 10000,
    MOST_ARRAYS = 4096,
    ANY_SMOOTH = 99
};

#define TINY_RADIUS 1e-8    /* below it what D leaves of a kink is frozen */
#define SOFTNESS 0.05       /* of the softened exponential, in units of its scale */
#define LEAST_MARGIN 1e-300 /* below it a second derivative would overflow, and counts as none */
#define FAR 100.0           /* beyond it bounds have saturated, to rounding */
#define MARGIN 0.5          /* of bounds, as a share of the extent */
#define LEAST_RANGE 1e-6    /* of the responses in a region, as a share of the largest of them */
#define MOST_VARIANCE 9.0   /* of the function, in variances of the responses */
#define COVERED_GAPS 3.0    /* gaps from the nearest point up to which a query is covered, */
#define EMPTY_GAPS 10.0     /* and from which on it is not */
#define PLACES 32           /* between points of a region, by which its gap is measured: see `model.gaps` */
#define GOLDEN 0.618034     /* 1 / golden ratio */
#define LEAST_GAP 1e-12     /* of points in one place, relative to the radius */
#define NEARLY 0.9995       /* what counts of a region's word beyond the reach of the first level, in coverage */

/* ---- arithmetic ------------------------------------------------------------------------------------------------------------- */

INLINE double least(double a, double b) { return a < b ? a : b; }
INLINE double greatest(double a, double b) { return a > b ? a : b; }

/* exp(x) for x <= 0, within 1.5 units in the last place; 3e-308 instead of less. x = k log 2 + r, |r| <= log(2) / 2, and
 * exp(r) = 1 + r + r² q(r) with q a Chebyshev fit of degree 9, whose error is 1.3e-17. */
INLINE double exp_negative(double x)
{
    const double magic = 0x1.8p52; /* adding it rounds to a whole number, which then stands in the lowest bits */
    double shifted, k, r, q, p;
    uint64_t bits, exponent;
    x = greatest(x, -708.0);
    shifted = x * 0x1.71547652b82fep+0 + magic;
    k = shifted - magic;
    r = x - k * 0x1.62e42fee00000p-1;
    r = r - k * 0x1.a39ef35793c76p-33;
    q = 0x1.af38a9b0ec855p-26;
    q = q * r + 0x1.289185613a3d6p-22;
    q = q * r + 0x1.71de0dae63bb3p-19;
    q = q * r + 0x1.a019b90d2ae7ap-16;
    q = q * r + 0x1.a01a01a7c41d5p-13;
    q = q * r + 0x1.6c16c1788bd90p-10;
    q = q * r + 0x1.11111111109b3p-7;
    q = q * r + 0x1.5555555553d63p-5;
    q = q * r + 0x1.5555555555556p-3;
    q = q * r + 0x1.0000000000001p-1;
    p = 1.0 + (r + (r * r) * q);
    memcpy(&exponent, &shifted, sizeof exponent);
    memcpy(&bits, &p, sizeof bits);
    bits += exponent << 52;
    memcpy(&p, &bits, sizeof p);
    return p;
}

/* log(x) for normal x > 0, within 2 units in the last place: x = 2^k m with m near one, s = (m - 1) / (m + 1) and
 * log m = 2 s + s³ L(s²) with L a Chebyshev fit of degree 6, whose error is 5e-18. */
INLINE double log_positive(double x)
{
    const uint64_t root_half = 0x3fe6a09e667f3bcdULL; /* the bits of √½ */
    const double magic = 0x1.0p52;
    uint64_t bits, steps;
    double m, k, s, z, L;
    memcpy(&bits, &x, sizeof bits);
    /* k + 1024, by adding the distance of one from √½, stands in the exponent's place */
    steps = (bits + (0x3ff0000000000000ULL - root_half) + 0x0010000000000000ULL) >> 52;
    bits = bits + 0x4000000000000000ULL - (steps << 52);
    memcpy(&m, &bits, sizeof m);
    steps |= 0x4330000000000000ULL; /* the bits of 2^52 */
    memcpy(&k, &steps, sizeof k);
    k = (k - magic) - 1024.0;
    s = (m - 1.0) / (m + 1.0);
    z = s * s;
    L = 0x1.2b59b713616c9p-3;
    L = L * z + 0x1.39fe42e9740a7p-3;
    L = L * z + 0x1.7462b58e46ebep-3;
    L = L * z + 0x1.c71c62e26208bp-3;
    L = L * z + 0x1.2492492df3ba9p-2;
    L = L * z + 0x1.99999999952ccp-2;
    L = L * z + 0x1.5555555555558p-1;
    return k * 0x1.62e42fee00000p-1 + (2.0 * s + (s * z * L + k * 0x1.a39ef35793c76p-33));
}

/* Σ a_i b_i over n numbers, a multiple of LANES: partial sums in a fixed order, which compilers may keep in vector registers. */
INLINE double dot(const double *restrict a, const double *restrict b, long n)
{
    double sum[LANES] = {0};
    for (long i = 0; i < n; i += LANES)
        for (int j = 0; j < LANES; j++) sum[j] += a[i + j] * b[i + j];
    return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

#ifdef __GNUC__
/* LANES numbers in as many registers as they take, of any address. */
typedef double lanes __attribute__((vector_size(8 * sizeof(double)), aligned(sizeof(double)), may_alias));

/* Their sum, in the order of `dot`. */
INLINE double sum_lanes(lanes s)
{
    typedef double four __attribute__((vector_size(4 * sizeof(double))));
    typedef double two __attribute__((vector_size(2 * sizeof(double))));
    const union {
        lanes whole;
        four half[2];
    } a = {s};
    const union {
        four whole;
        two half[2];
    } b = {a.half[0] + a.half[1]};
    const two c = b.half[0] + b.half[1];
    return c[0] + c[1];
}

/* For `few` rows a_o of n numbers, `ahead` apart: Σ a_i K_i and Σ a_i K1_i z_ki over d rows of z, `stride` apart, added to f_o0
 * and, times `unit`, to f_ok. What rows share is loaded once. */
INLINE void add_sums(const double *restrict a, long ahead, const double *restrict K, const double *restrict K1,
                     const double *restrict z, long stride, long n, const int d, const int few, double unit, double *restrict f,
                     long jet)
{
    lanes sum[3][4] = {{{0}}};
    for (long i = 0; i < n; i += LANES) {
        const lanes value = *(const lanes *)(K + i), slope = *(const lanes *)(K1 + i);
        for (int o = 0; o < few; o++) {
            const lanes weight = *(const lanes *)(a + o * ahead + i), b = weight * slope;
            sum[o][0] += weight * value;
            for (int k = 0; k < d; k++) sum[o][1 + k] += b * *(const lanes *)(z + k * stride + i);
        }
    }
    for (int o = 0; o < few; o++)
        for (int k = 0; k <= d; k++) f[o * jet + k] += (k ? unit : 1.0) * sum_lanes(sum[o][k]);
}
#endif

/* n up to a multiple of LANES. */
INLINE long pad(int64_t n) { return (long)((n + LANES - 1) / LANES * LANES); }

INLINE double power(double base, int exponent)
{
    double result = 1.0;
    for (; exponent > 0; exponent >>= 1, base *= base)
        if (exponent & 1) result *= base;
    return result;
}

/* ---- radial functions --------------------------------------------------------------------------------------------------------
 * A function f of s = r² with Df = f'/r and D²f, from which ∇f = Df x and ∇²f = Df I + D²f x xᵀ. */

enum kind {
    NONE,
    GAUSSIAN,
    MATERN32,
    MATERN52,
    MATERN72,
    EXPONENTIAL,
    SOFT_EXPONENTIAL,
    MULTIQUADRIC,
    LINEAR,
    THIN_PLATE,
    CUBIC,
    QUINTIC,
    WENDLAND,
    CUT_GAUSSIAN
};

/* Σ_i c_i r^i (1 - r)₊^power / r^pole */
typedef struct {
    int count, power, pole;
    double c[MOST_ORDER + 1];
} compact;

typedef struct {
    enum kind kind;
    int smoothness;
    compact terms[3]; /* f, Df, D²f of a Wendland function */
} radial;

/* Iᵏ (1 - r)₊^ell with value 1 at zero, where D I f = -f (Wendland 2004, definition 9.11): if f = (1 - r)^n p(r), then
 * I f = (1 - r)^(n + 1) q(r) with (n + 1 + j) q_j = (j + 1) q_(j+1) + p_(j-1), from the highest power down: nothing cancels. */
static void make_wendland(radial *phi, int ell, int k)
{
    compact steps[3]; /* the last three of I⁰, I¹, …, newest first */
    memset(steps, 0, sizeof steps);
    steps[0].count = 1, steps[0].power = ell, steps[0].c[0] = 1.0;
    for (int step = 0; step < k; step++) {
        compact next;
        memset(&next, 0, sizeof next);
        next.count = step + 2, next.power = ell + step + 1;
        for (int j = step + 1; j >= 0; j--) {
            double above = j < step + 1 ? (j + 1) * next.c[j + 1] : 0.0;
            next.c[j] = (above + (j > 0 ? steps[0].c[j - 1] : 0.0)) / (next.power + j);
        }
        steps[2] = steps[1], steps[1] = steps[0], steps[0] = next;
    }
    if (k < 2) { /* D (1 - r)^ell = -ell (1 - r)^(ell - 1) / r, and once more */
        compact first = {1, ell - 1, 1, {-(double)ell}};
        compact second = {2, ell - 2, 3, {(double)ell, (double)ell * (ell - 2)}};
        if (k == 1) {
            steps[2] = first; /* D² I f = -D f */
        } else {
            steps[1] = first, steps[2] = second;
        }
    }
    for (int order = 0; order < 3; order++) {
        double unit = steps[0].c[0], sign = k - order >= 0 && order == 1 ? -1.0 : k == 1 && order == 2 ? -1.0 : 1.0;
        phi->terms[order] = steps[order];
        for (int j = 0; j < steps[order].count; j++) phi->terms[order].c[j] = sign * steps[order].c[j] / unit;
    }
    phi->kind = WENDLAND;
}

/* f, Df, D²f up to some order at radius r. Powers of 1 - r grow from those of D²f, so that f is the same for every order. */
INLINE void compact_terms(const compact terms[3], double r, int order, double f[3])
{
    const double base = r < 1.0 ? 1.0 - r : 0.0;
    int exponent = terms[2].power > 0 ? terms[2].power : 0;
    double envelope = power(base, exponent);
    for (int k = 2; k >= 0; k--) {
        for (; exponent < terms[k].power; exponent++) envelope *= base;
        if (k > order) continue;
        double sum = terms[k].c[terms[k].count - 1];
        for (int j = terms[k].count - 2; j >= 0; j--) sum = sum * r + terms[k].c[j];
        if (terms[k].pole) sum /= power(greatest(r, TINY_RADIUS), terms[k].pole);
        f[k] = r < 1.0 ? sum * envelope : 0.0;
    }
}

/* A stitching weight at one squared radius. */
INLINE void weigh(const radial *phi, double s, int order, double f[3])
{
    if (phi->kind == CUT_GAUSSIAN) {
        f[0] = s < 1.0 ? exp_negative(-4.0 * s) : 0.0;
        f[1] = -8.0 * f[0], f[2] = 64.0 * f[0];
        return;
    }
    compact_terms(phi->terms, sqrt(s), order, f);
}

/* D³f of a kernel at n squared radii, from f and the terms before it; zero for a Wendland kernel, which has none. */
static void third_terms(const radial *phi, const double *restrict s, long n, const double *restrict f1, const double *restrict f2,
                        double *restrict f3)
{
    const double soft = phi->kind == SOFT_EXPONENTIAL ? SOFTNESS * SOFTNESS : 0.0;
    for (long i = 0; i < n; i++) {
        const double r = greatest(sqrt(s[i] + soft), TINY_RADIUS), inverse = 1.0 / r;
        switch (phi->kind) {
        case GAUSSIAN: f3[i] = -2.0 * f2[i]; break;
        case EXPONENTIAL:
        case SOFT_EXPONENTIAL: f3[i] = f1[i] * (3.0 + r * (3.0 + r)) * power(inverse, 4); break;
        case MATERN32: f3[i] = -f2[i] * (1.0 + sqrt(3.0) * r) * power(inverse, 2); break;
        case MATERN52: f3[i] = -sqrt(5.0) * f2[i] * inverse; break;
        case MATERN72: f3[i] = -7.0 * f2[i] / (1.0 + sqrt(7.0 * s[i])); break;
        case MULTIQUADRIC: f3[i] = -3.0 * f2[i] / (1.0 + s[i]); break;
        case LINEAR: f3[i] = -3.0 * f2[i] * power(inverse, 2); break;
        case THIN_PLATE: f3[i] = -f2[i] * f2[i]; break;
        case CUBIC: f3[i] = -f2[i] * power(inverse, 2); break;
        case QUINTIC: f3[i] = -15.0 * inverse; break;
        default: f3[i] = 0.0;
        }
    }
}

/* f, Df and D²f of a kernel at n squared radii. */
INLINE void kernel_terms(const radial *phi, const double *restrict s, long n, int order, double *restrict f, double *restrict f1,
                         double *restrict f2)
{
    const double rate2 = phi->kind == MATERN32 ? 3.0 : phi->kind == MATERN52 ? 5.0 : phi->kind == MATERN72 ? 7.0 : 1.0;
    const double rate = sqrt(rate2), soft = phi->kind == SOFT_EXPONENTIAL ? SOFTNESS * SOFTNESS : 0.0;
    long i;
    switch (phi->kind) {
    case GAUSSIAN:
        for (i = 0; i < n; i++) f[i] = exp_negative(-s[i]);
        if (order >= 1)
            for (i = 0; i < n; i++) f1[i] = -2.0 * f[i];
        if (order >= 2)
            for (i = 0; i < n; i++) f2[i] = 4.0 * f[i];
        break;
    case EXPONENTIAL:
    case SOFT_EXPONENTIAL: {
        const double tip = soft > 0.0 ? exp(-SOFTNESS) : 1.0;
        for (i = 0; i < n; i++) {
            double r = sqrt(s[i] + soft), e = exp_negative(-r) / tip, safe = greatest(r, TINY_RADIUS);
            f[i] = e;
            if (order >= 1) f1[i] = -e / safe;
            if (order >= 2) f2[i] = e * (1.0 + r) / (safe * safe * safe);
        }
        break;
    }
    case MATERN32:
        for (i = 0; i < n; i++) {
            double r = rate * sqrt(s[i]), e = exp_negative(-r);
            f[i] = (1.0 + r) * e;
            if (order >= 1) f1[i] = -3.0 * e;
            if (order >= 2) f2[i] = 9.0 * e / greatest(r, TINY_RADIUS);
        }
        break;
    case MATERN52:
        for (i = 0; i < n; i++) {
            double r = rate * sqrt(s[i]), e = exp_negative(-r);
            f[i] = (1.0 + r * (1.0 + r * (1.0 / 3.0))) * e;
            if (order >= 1) f1[i] = (-5.0 / 3.0) * (1.0 + r) * e;
            if (order >= 2) f2[i] = (25.0 / 3.0) * e;
        }
        break;
    case MATERN72:
        for (i = 0; i < n; i++) {
            double r = rate * sqrt(s[i]), e = exp_negative(-r);
            f[i] = (1.0 + r * (1.0 + r * (0.4 + r * (1.0 / 15.0)))) * e;
            if (order >= 1) f1[i] = (-7.0 / 5.0) * (1.0 + r * (1.0 + r * (1.0 / 3.0))) * e;
            if (order >= 2) f2[i] = (49.0 / 15.0) * (1.0 + r) * e;
        }
        break;
    case MULTIQUADRIC:
        for (i = 0; i < n; i++) {
            double root = sqrt(1.0 + s[i]), inverse = 1.0 / root;
            f[i] = -root;
            if (order >= 1) f1[i] = -inverse;
            if (order >= 2) f2[i] = inverse * inverse * inverse;
        }
        break;
    case LINEAR:
        for (i = 0; i < n; i++) {
            double r = sqrt(s[i]), safe = greatest(r, TINY_RADIUS);
            f[i] = -r;
            if (order >= 1) f1[i] = -1.0 / safe;
            if (order >= 2) f2[i] = 1.0 / (safe * safe * safe);
        }
        break;
    case THIN_PLATE:
        for (i = 0; i < n; i++) {
            double safe = greatest(s[i], TINY_RADIUS * TINY_RADIUS), log_s = log_positive(safe);
            f[i] = 0.5 * safe * log_s;
            if (order >= 1) f1[i] = log_s + 1.0;
            if (order >= 2) f2[i] = 2.0 / safe;
        }
        break;
    case CUBIC:
        for (i = 0; i < n; i++) {
            double r = sqrt(s[i]);
            f[i] = s[i] * r;
            if (order >= 1) f1[i] = 3.0 * r;
            if (order >= 2) f2[i] = 3.0 / greatest(r, TINY_RADIUS);
        }
        break;
    case QUINTIC:
        for (i = 0; i < n; i++) {
            double r = sqrt(s[i]);
            f[i] = -s[i] * s[i] * r;
            if (order >= 1) f1[i] = -5.0 * s[i] * r;
            if (order >= 2) f2[i] = -15.0 * r;
        }
        break;
    default: /* WENDLAND */
        for (i = 0; i < n; i++) {
            double found[3];
            compact_terms(phi->terms, sqrt(s[i]), order, found);
            f[i] = found[0];
            if (order >= 1) f1[i] = found[1];
            if (order >= 2) f2[i] = found[2];
        }
    }
}

/* ---- polynomials -------------------------------------------------------------------------------------------------------------
 * Monomials of total degree up to some bound, those of lower degree first; each is its parent times a variable. */

typedef struct {
    int32_t *count;             /* [degree + 2]: monomials of degree less than k */
    int32_t *parent, *variable; /* [s] */
    int32_t *raised;            /* [d * s] the monomial z^(e + 1_k) of every variable k, where its degree allows one */
    double *factor;             /* [d * s] e_k + 1: ∂_k Σ λ_e z^e = Σ factor λ_raised z^e */
} basis;

/* C(d + degree, d), or -1 if it exceeds `most`. */
static int64_t count_monomials(int64_t d, int64_t degree, int64_t most)
{
    int64_t count = 1;
    for (int64_t k = 1; k <= degree; k++) {
        if (count > INT64_MAX / (d + k)) return -1;
        count = count * (d + k) / k;
        if (count > most) return -1;
    }
    return degree < 0 ? 0 : count;
}

/* The monomial z^(e + 1_v); children of a monomial are in the order of their variable, from its own on. */
static int32_t raise(const basis *B, const int32_t *child, int32_t e, int32_t v)
{
    if (B->variable[e] <= v) return child[e] + v - B->variable[e];
    int32_t above = raise(B, child, B->parent[e], v);
    return child[above] + B->variable[e] - B->variable[above];
}

/* ---- balls and who contains a query ------------------------------------------------------------------------------------------
 * Balls are put in an order in which neighbours follow each other and into groups of eight, these into groups of eight, and so on.
 * A group has a centre g and, for each level, a bound: the most of |c - g| + r over its balls. */

typedef struct {
    long blocks;     /* of eight balls or groups */
    double *centers; /* [blocks * d * 8] */
} tier;

typedef struct {
    int d, tiers;
    tier tier[24];
    int32_t *ball; /* [blocks of the first tier * 8] index of the ball in that place */
} ball_tree;

typedef struct {
    double *bound[24]; /* [blocks * 8] of each tier: squared radii, and negative ones where there is nothing */
} reach;

typedef struct {
    int32_t *place, *query;
    long count, capacity;
    int owned, failed;
} hits;

static void add_hit(hits *H, int32_t place, int32_t query)
{
    if (H->count == H->capacity) {
        long capacity = 2 * H->capacity;
        int32_t *places = malloc(sizeof *places * (size_t)capacity), *queries = malloc(sizeof *queries * (size_t)capacity);
        if (!places || !queries) {
            free(places), free(queries);
            H->failed = 1;
            return;
        }
        memcpy(places, H->place, sizeof *places * (size_t)H->count);
        memcpy(queries, H->query, sizeof *queries * (size_t)H->count);
        if (H->owned) free(H->place), free(H->query);
        H->place = places, H->query = queries, H->capacity = capacity, H->owned = 1;
    }
    H->place[H->count] = place, H->query[H->count++] = query;
}

/* Which of eight balls contain q, as bits. */
INLINE unsigned contains(const double *restrict centers, const double *restrict bound, const double *restrict q, int d)
{
    double sum[LANES] = {0};
    unsigned found = 0;
    for (int k = 0; k < d; k++)
        for (int j = 0; j < LANES; j++) {
            double offset = q[k] - centers[k * LANES + j];
            sum[j] += offset * offset;
        }
    for (int j = 0; j < LANES; j++) found |= (unsigned)(sum[j] < bound[j]) << j;
    return found;
}

INLINE unsigned contains_in(const double *restrict centers, const double *restrict bound, const double *restrict q, int d)
{
    return d == 2 ? contains(centers, bound, q, 2) : d == 3 ? contains(centers, bound, q, 3) : contains(centers, bound, q, d);
}

/* Places of balls that contain q, in ascending order: a walk down the tiers. */
INLINE void find_balls(const ball_tree *C, const reach *R, const double *q, int32_t query, hits *H)
{
    long block[24];
    unsigned left[24];
    int depth = C->tiers - 1;
    block[depth] = 0;
    left[depth] = contains_in(C->tier[depth].centers, R->bound[depth], q, C->d);
    while (depth < C->tiers) {
        if (!left[depth]) {
            depth++;
            continue;
        }
        int j = 0;
        while (!(left[depth] >> j & 1u)) j++;
        left[depth] &= left[depth] - 1;
        long next = LANES * block[depth] + j;
        if (depth == 0) {
            add_hit(H, (int32_t)next, query);
        } else {
            depth--;
            block[depth] = next;
            left[depth] = contains_in(C->tier[depth].centers + next * C->d * LANES, R->bound[depth] + next * LANES, q, C->d);
        }
    }
}

/* Put index[low, high) in an order in which its first `left` have the least coordinates: quickselect. */
static void select_least(int32_t *index, long low, long high, long left, const double *x, long stride)
{
    uint32_t seed = 1;
    while (high - low > 1) {
        seed = seed * 1664525u + 1013904223u;
        double pivot = x[index[low + (long)(seed % (uint64_t)(high - low))] * stride];
        long i = low, j = high - 1;
        while (i <= j) {
            while (x[index[i] * stride] < pivot) i++;
            while (x[index[j] * stride] > pivot) j--;
            if (i <= j) {
                int32_t swap = index[i];
                index[i] = index[j], index[j] = swap;
                i++, j--;
            }
        }
        if (left <= j)
            high = j + 1;
        else if (left >= i)
            low = i;
        else
            return;
    }
}

/* Order points X (n, d) so that blocks of `size` are near each other, and so are blocks of blocks. */
static void order_in_space(int32_t *index, long low, long high, long size, const double *X, int d)
{
    while (high - low > size) {
        int widest = 0;
        double extent = -1.0;
        for (int k = 0; k < d; k++) {
            double least_x = INFINITY, most_x = -INFINITY;
            for (long i = low; i < high; i++) {
                double x = X[(long)index[i] * d + k];
                least_x = least(x, least_x), most_x = greatest(x, most_x);
            }
            if (most_x - least_x > extent) extent = most_x - least_x, widest = k;
        }
        long blocks = (high - low + size - 1) / size, half = 1;
        while (2 * half < blocks) half *= 2; /* a power of two, so that blocks of blocks are whole */
        select_least(index, low, high, low + half * size, X + widest, d);
        order_in_space(index, low, low + half * size, size, X, d);
        low += half * size;
    }
}

/* ---- bounds ------------------------------------------------------------------------------------------------------------------
 * Beyond a bound b with margin m, x becomes b + m ψ((x - b) / m), ψ(t) = t / (1 + t⁸)^⅛. */

typedef struct {
    double lower, upper, margin;
} bound;

/* Of what has these extremes; `slack` margins beyond them are free, and the margin is at least the given one. */
static bound bound_between(double low, double high, double slack, double least_margin)
{
    const double margin = greatest(MARGIN * high - MARGIN * low, least_margin);
    const bound B = {low - slack * margin, high + slack * margin, margin};
    return B;
}

static double saturate(const bound *B, double x, double *first, double *second)
{
    *first = B->margin > 0.0 ? 1.0 : 0.0, *second = 0.0; /* without a margin it is constant */
    if (x >= B->lower && x <= B->upper) return x;
    const double sign = x < B->lower ? -1.0 : 1.0, edge = sign < 0.0 ? B->lower : B->upper, margin = B->margin;
    const double t = margin > 0.0 ? least(sign * (x - edge) / margin, FAR) : FAR;
    const double p = 1.0 + power(t, 8), root = sqrt(sqrt(sqrt(p)));
    *first = t < FAR ? 1.0 / (p * root) : 0.0;
    *second = t < FAR ? -9.0 * sign * power(t, 7) / (p * p * root) : 0.0;
    *second = margin > LEAST_MARGIN ? *second / margin : 0.0;
    return edge + sign * margin * (t / root);
}

/* s(f) from the jet of f, in its place: ∇s(f) = s' ∇f, ∇²s(f) = s' ∇²f + s" ∇f ∇fᵀ. */
static void hold(const bound *B, double *f, int d, int order)
{
    double slope, bend;
    f[0] = saturate(B, f[0], &slope, &bend);
    if (order >= 2)
        for (int a = 0; a < d; a++)
            for (int b = 0; b < d; b++) {
                double *H = &f[1 + d + (long)a * d + b];
                *H = slope * *H + bend * (f[1 + a] * f[1 + b]);
            }
    if (order >= 1)
        for (int a = 0; a < d; a++) f[1 + a] *= slope;
}

/* ---- models ------------------------------------------------------------------------------------------------------------------
 * What single queries need of a region lies together, region after region in the order of their places. */

typedef struct {
    double radius, share, scale, inverse; /* inverse: 1 / (scale σ) */
    int32_t ball, kernel, degree, turn;
    double numbers[]; /* centre [d], origin [d], bounds [t]; if packed, from a multiple of 64 bytes on: α and then λ
                       * [t * (padded + rows)], points [d * padded], and with slopes β [t * d * padded] */
} record;

typedef struct {
    int64_t m, h, s, n;
    const double *X, *centers, *radii, *share, *origin, *scale, *sigma, *alpha, *lam, *turns;
    const double *beta;     /* [m * h * t * d] vectors of measured slopes, NULL without them */
    const double *stress;   /* [m * t] shares for each output in units of their mean, NULL where outputs have common shares */
    const double *extremes; /* [2 * m * t] of the responses of each region's points, NULL where nothing bounds what it says */
    const int64_t *members, *kernel, *degree, *turn;
    const int32_t *short_members; /* in the place of members, and these of α, where they are stored in 32 bits */
    const float *short_alpha;
    const double *factor;              /* what `part_variance` needs of every region, NULL unless it is stored */
    const int64_t *factor_start;       /* [m + 1] where that of each begins */
    const double *c2, *noise, *growth; /* [m * t] c² and noise of each region, [m * t * d] slopes of log c² by the radius */
    const double *gaps;    /* [m] how far places between a region's points are from them, NULL where coverage does not ask */
    int64_t per_ball;      /* models that a region averages */
    const double **turned; /* points by turn, NULL where the turn changes nothing */
    basis basis;
    ball_tree ball_tree;
    int packed;
    int64_t padded, rows; /* h and, in few dimensions, s up to multiples of LANES */
    size_t head, stride;  /* bytes of a record without and with what is packed */
    char *records;
} set;

/* The point that is member i of all members of all regions. */
INLINE int64_t member_at(const set *S, int64_t i) { return S->short_members ? S->short_members[i] : S->members[i]; }

static const record *record_at(const set *S, int64_t place) { return (const record *)(S->records + (size_t)place * S->stride); }

typedef struct {
    const set *set;
    double width, usual; /* regions speak within `width` times their radii */
    reach reach;
    int together; /* levels from here on that are evaluated at once: wider and wider, of the same regions */
} level;

/* Features with a period, and longitude with latitude in degrees, have places on circles and on a sphere: see `model.chart`. */
typedef struct {
    int count, longitude, latitude; /* features, and those of the globe, or -1 */
    const double *period;           /* of each, zero for a plain one; NULL without a chart, where places are the features */
    int *column;                    /* the first coordinate of the place of each */
} chart;

typedef struct engine engine;

struct st_model {
    void *spare[4];
    uint64_t magic;
    int d, t, depth, sets, smoothness, diagonal; /* d: of places */
    int log;                                     /* the levels speak of log y */
    const double *shift, *A;
    const double *points; /* [n * d] in the space of the regions, those that sets without points of their own share */
    int64_t n;
    double w0, handover;
    chart chart;
    bound *places, *answers; /* [d], [t] */
    const double *deviation; /* [t] factors of standard deviations, NULL unless factors of regions are stored */
    double *spread;          /* [t] variances of the responses */
    int64_t deviation_room;  /* numbers that `part_variance` needs */
    radial weight, *kernels;
    set *set;
    level *level, wide; /* wide: the regions as far as coverage looks */
    int own;            /* levels of the first set */
    int64_t scratch;    /* numbers that evaluating a region needs */
    const engine *engine;
    void *map;
    size_t map_size;
    void **owned;
    long owned_count;
};

#define MAGIC 0x73746974636877ULL

static int is_open(const st_model *M) { return M->magic == MAGIC; }

/* ---- local models ------------------------------------------------------------------------------------------------------------
 * A jet is a value with its derivatives up to some order, one after the other: 1 + d + d² numbers at most. Sums of a query are the
 * jet of W = Σ w_j, followed by those of N = Σ w_j f_j for every output. */

typedef struct {
    const st_model *model;
    const level *level; /* the first of those evaluated at once */
    const record *record;
    const int32_t *query; /* [count] */
    long count;
    const double *Q;      /* (n, d) */
    const int32_t *depth; /* [n] how many of the levels each query needs */
    int order;
    double *sums; /* (n, levels, 1 + t) jets */
    double *scratch;
} job;

INLINE long jet_size(int d, int order) { return 1 + (order >= 1 ? d : 0) + (order >= 2 ? (long)d * d : 0); }

/* N += w f by the product rule. */
INLINE void add_product(double *restrict N, const double *restrict w, const double *restrict f, int d, int order)
{
    N[0] += w[0] * f[0];
    if (order >= 1)
        for (int a = 1; a <= d; a++) N[a] += w[0] * f[a] + f[0] * w[a];
    if (order >= 2)
        for (int a = 0; a < d; a++)
            for (int b = 0; b < d; b++) {
                long c = 1 + d + (long)a * d + b;
                N[c] += w[0] * f[c] + f[0] * w[c] + (f[1 + a] * w[1 + b] + f[1 + b] * w[1 + a]);
            }
}

/* |q - c|² */
INLINE double squared_distance(const double *q, const double *c, int d)
{
    double sum = 0.0;
    for (int k = 0; k < d; k++) sum += (q[k] - c[k]) * (q[k] - c[k]);
    return sum;
}

/* w_j(q) = s_j φ(|q - c_j| / r_j) as a jet, where |q - c_j|² = s. */
INLINE void weigh_region(const st_model *M, const record *r, double width, const double *q, double s, int d, int order, double *w)
{
    const double inverse = 1.0 / (width * r->radius), *c = r->numbers;
    double phi[3];
    weigh(&M->weight, s * inverse * inverse, order, phi);
    w[0] = r->share * phi[0];
    for (int a = 0; a < d && order >= 1; a++) w[1 + a] = r->share * phi[1] * inverse * ((q[a] - c[a]) * inverse);
    for (int a = 0; a < d && order >= 2; a++)
        for (int b = 0; b < d; b++) {
            const double zz = (q[a] - c[a]) * inverse * ((q[b] - c[b]) * inverse);
            w[1 + d + a * d + b] = r->share * ((a == b ? phi[1] : 0.0) + phi[2] * zz) * inverse * inverse;
        }
}

/* Monomials P_e = z^e of a region in z, of which there are count[degree + 1]. */
INLINE int32_t find_monomials(const basis *B, int64_t degree, const double *restrict z, double *restrict P)
{
    const int32_t count = B->count[degree + 1];
    P[0] = 1.0;
    for (int32_t e = 1; e < count; e++) P[e] = P[B->parent[e]] * z[B->variable[e]];
    return count;
}

/* What a polynomial adds to t jets: second derivatives, and in many dimensions, where most terms of a derivative are zero, all the
 * rest. Derivatives are with respect to z / per_scale. */
static void add_polynomial(const set *S, const record *r, const double *stress, const double *restrict P, int d, int t, int order,
                           double *restrict f)
{
    const basis *B = &S->basis;
    const int32_t count = B->count[r->degree + 1], fewer = B->count[r->degree],
                  fewest = r->degree > 0 ? B->count[r->degree - 1] : 0;
    const double per_scale = 1.0 / r->scale, *lam = S->lam + r->ball * S->s * t;
    const long jet = jet_size(d, order);
    for (int o = 0; o < t; o++, lam++, f += jet) {
        if (stress && stress[o] == 0.0) continue;
        for (int32_t e = 0; e < count && d > FEW_FEATURES; e++) f[0] += lam[(long)e * t] * P[e];
        for (int k = 0; k < d && order >= 1; k++) {
            const int32_t *up = B->raised + (long)k * S->s;
            const double *factor = B->factor + (long)k * S->s;
            double slope = 0.0;
            for (int32_t e = 0; e < fewer && d > FEW_FEATURES; e++) slope += P[e] * (factor[e] * lam[(long)up[e] * t]);
            f[1 + k] += per_scale * slope;
            for (int l = 0; l <= k && order >= 2; l++) {
                const int32_t *upper = B->raised + (long)l * S->s;
                double bend = 0.0;
                for (int32_t e = 0; e < fewest; e++)
                    bend += P[e] * (factor[e] * B->factor[(long)l * S->s + up[e]] * lam[(long)upper[up[e]] * t]);
                bend *= per_scale * per_scale;
                f[1 + d + (long)k * d + l] += bend;
                if (l < k) f[1 + d + (long)l * d + k] += bend;
            }
        }
    }
}

/* Derivatives with respect to u from those with respect to u T: ∇_u = T ∇, ∇²_u = T ∇² Tᵀ. */
static void turn_back(double *f, const double *T, int d, int order, double *spare)
{
    for (int a = 0; a < d; a++) {
        spare[a] = 0.0;
        for (int b = 0; b < d; b++) spare[a] += T[(long)a * d + b] * f[1 + b];
    }
    memcpy(f + 1, spare, sizeof *f * (size_t)d);
    if (order < 2) return;
    double *H = f + 1 + d;
    for (int pass = 0; pass < 2; pass++) { /* H ← (T H)ᵀ, twice */
        for (int b = 0; b < d; b++)
            for (int a = 0; a < d; a++) {
                double sum = 0.0;
                for (int k = 0; k < d; k++) sum += T[(long)a * d + k] * H[(long)k * d + b];
                spare[(long)b * d + a] = sum;
            }
        memcpy(H, spare, sizeof *H * (size_t)d * (size_t)d);
    }
}

/* Coefficients of n points from `start` on, a multiple of LANES but at the end, then those of monomials: rows of t, `ahead` apart.
 */
static void copy_coefficients(const set *S, int64_t ball, int64_t start, long n, int t, double *restrict to, long ahead)
{
    const int64_t first = (ball * S->h + start) * t;
    const double *lam = S->lam + ball * S->s * t;
    const long padded = pad(n), last = start + n == S->h && S->rows ? (long)S->basis.count[S->degree[ball] + 1] : 0;
    for (int o = 0; o < t; o++, to += ahead) {
        if (S->short_alpha)
            for (long i = 0; i < n; i++) to[i] = (double)S->short_alpha[first + i * t + o];
        else
            for (long i = 0; i < n; i++) to[i] = S->alpha[first + i * t + o];
        for (long i = n; i < padded; i++) to[i] = 0.0;
        for (long e = 0; e < pad(last); e++) to[padded + e] = e < last ? lam[e * t + o] : 0.0;
    }
}

/* Points [start, start + n) of a region, coordinates first, each of them `ahead` numbers long. */
static void copy_points(const set *S, const record *r, int64_t start, long n, int d, double *restrict x, long ahead)
{
    const int64_t first = r->ball * S->h + start;
    const double *X = S->turned[r->turn] ? S->turned[r->turn] : S->X;
    for (long i = 0; i < pad(n); i++) {
        const double *point = X + member_at(S, first + (i < n ? i : n - 1)) * d;
        for (int k = 0; k < d; k++) x[(long)k * ahead + i] = point[k];
    }
}

/* The vectors of measured slopes of the same points. */
static void copy_slopes(const set *S, const record *r, int64_t start, long n, int d, int t, double *restrict beta, long ahead)
{
    const double *b = S->beta + (r->ball * S->h + start) * t * d;
    for (int c = 0; c < t * d; c++)
        for (long i = 0; i < pad(n); i++) beta[(long)c * ahead + i] = i < n ? b[i * t * d + c] : 0.0;
}

/* q in the coordinates of a turn T. */
INLINE void turn_point(const double *T, const double *q, int d, double *u)
{
    for (int k = 0; k < d; k++) {
        u[k] = T ? 0.0 : q[k];
        for (int a = 0; a < d && T; a++) u[k] += q[a] * T[(long)a * d + k];
    }
}

/* What is known of a query at the points of a block and, behind them, at the monomials: for each of them one number in every
 * column. Offsets z from the points in units of the kernel's length scale, or for monomials derivatives in this unit. */
typedef struct {
    double *z; /* [d * stride] */
    double *s, *K, *K1, *K2, *b;
    long stride;
} columns;

typedef void terms_function(const radial *, const double *, long, int, double *, double *, double *);
typedef void slopes_function(const radial *, const columns *, const double *, long, long, double, int, int, const double *, int,
                             double *, double *);

INLINE columns lay_out(double *scratch, int d, long stride)
{
    double *s = scratch + d * stride;
    const columns C = {scratch, s, s + stride, s + 2 * stride, s + 3 * stride, s + 4 * stride, stride};
    return C;
}

/* Σ β_i·∇ K(x_i, q) over n points, from the columns of q:
 * -Σ DK β·δ, with ∇ = -Σ (DK β + D²K (β·δ) δ) and ∇² = -Σ (D²K (β δᵀ + δ βᵀ + (β·δ) I) + D³K (β·δ) δ δᵀ). */
INLINE void add_slopes(const radial *kernel, const columns *C, const double *restrict beta, long n, long ahead, double inverse,
                       int d, int t, const double *stress, int order, double *restrict spare, double *restrict f)
{
    const long jet = jet_size(d, order);
    const double *K1 = C->K1, *K2 = C->K2;
    double *b = C->b, *K3 = spare, *along = K3 + BLOCK, *left = along + BLOCK, *right = left + BLOCK;
    if (order >= 2) third_terms(kernel, C->s, n, K1, K2, K3);
    for (int o = 0; o < t; o++, f += jet, beta += d * ahead) {
        if (stress && stress[o] == 0.0) continue;
        for (long i = 0; i < n; i++) along[i] = beta[i] * C->z[i];
        for (int k = 1; k < d; k++)
            for (long i = 0; i < n; i++) along[i] += beta[k * ahead + i] * C->z[k * C->stride + i];
        f[0] -= dot(along, K1, n);
        if (order < 1) continue;
        double trace = 0.0;
        for (long i = 0; i < n; i++) b[i] = K2[i] * along[i], trace += b[i];
        for (int k = 0; k < d; k++) f[1 + k] -= inverse * (dot(beta + k * ahead, K1, n) + dot(b, C->z + k * C->stride, n));
        if (order < 2) continue;
        for (int k = 0; k < d; k++) {
            const double *along_k = C->z + k * C->stride;
            for (long i = 0; i < n; i++) {
                left[i] = K2[i] * along_k[i];
                right[i] = K2[i] * beta[k * ahead + i] + K3[i] * along[i] * along_k[i];
            }
            for (int l = 0; l <= k; l++) {
                const double both = dot(left, beta + l * ahead, n) + dot(right, C->z + l * C->stride, n);
                const double sum = inverse * inverse * (both + (k == l ? trace : 0.0));
                f[1 + d + k * d + l] -= sum;
                if (l < k) f[1 + d + l * d + k] -= sum;
            }
        }
    }
}

/* The columns of a query u at n points whose coordinates are `ahead` numbers apart; terms of the kernel up to some order. */
INLINE void find_columns(const radial *kernel, const columns C, const double *restrict x, long n, long ahead, double inverse,
                         const double *restrict u, const int d, int order, terms_function *terms)
{
    for (int k = 0; k < d; k++)
        for (long i = 0; i < n; i++) {
            const double along = (u[k] - x[k * ahead + i]) * inverse;
            C.z[k * C.stride + i] = along;
            C.s[i] = k ? C.s[i] + along * along : along * along;
        }
    terms(kernel, C.s, n, order, C.K, C.K1, C.K2);
}

/* And at the monomials, which are put behind n points; as many as that makes, a multiple of LANES. */
INLINE long append_monomials(const set *S, const record *r, const columns C, long n, const double *z, const int d, const int order)
{
    const basis *B = &S->basis;
    double *P = C.K + n;
    const int32_t count = find_monomials(B, r->degree, z, P), fewer = B->count[r->degree];
    const long rows = pad(count);
    const double sigma = 1.0 / (r->inverse * r->scale);
    for (long e = count; e < rows; e++) P[e] = 0.0;
    for (long e = 0; e < rows && order >= 1; e++) C.K1[n + e] = 1.0;
    for (int k = 0; k < d && order >= 1; k++) {
        const int32_t *up = B->raised + (long)k * S->s;
        const double *factor = B->factor + (long)k * S->s;
        double *slope = C.z + k * C.stride + n;
        for (long e = 0; e < rows; e++) slope[e] = 0.0;
        for (int32_t e = 0; e < fewer; e++) slope[up[e]] = sigma * (factor[e] * P[e]);
    }
    return n + rows;
}

/* Σ α_i K(x_i, q) + Σ λ_e p_e(q), added to t jets, from `all` columns of which the first n are those of points. */
INLINE void add_outputs(const columns C, const double *restrict alpha, long n, long all, long ahead, double inverse, const int d,
                        int t, const double *stress, const int order, double *restrict f)
{
    const long jet = jet_size(d, order);
#ifdef __GNUC__
    if (order == 1 && d <= FEW_FEATURES && !stress) {
        for (; t >= 3; t -= 3, alpha += 3 * ahead, f += 3 * jet)
            add_sums(alpha, ahead, C.K, C.K1, C.z, C.stride, all, d, 3, inverse, f, jet);
        for (; t > 0; t--, alpha += ahead, f += jet) add_sums(alpha, ahead, C.K, C.K1, C.z, C.stride, all, d, 1, inverse, f, jet);
        return;
    }
#endif
    for (int o = 0; o < t; o++, f += jet) {
        const double *a = alpha + (long)o * ahead;
        double *b = C.b, trace = 0.0;
        if (stress && stress[o] == 0.0) continue;
        f[0] += dot(a, C.K, all);
        if (order < 1) continue;
        for (long i = 0; i < all; i++) b[i] = a[i] * C.K1[i];
        for (int k = 0; k < d; k++) f[1 + k] += inverse * dot(b, C.z + k * C.stride, all);
        if (order < 2) continue;
        for (long i = 0; i < n; i++) trace += b[i];
        for (int k = 0; k < d; k++) {
            for (long i = 0; i < n; i++) b[i] = a[i] * C.K2[i] * C.z[k * C.stride + i];
            for (int l = 0; l <= k; l++) {
                const double sum = inverse * inverse * (dot(b, C.z + l * C.stride, n) + (k == l ? trace : 0.0));
                f[1 + d + k * d + l] += sum;
                if (l < k) f[1 + d + l * d + k] += sum;
            }
        }
    }
}

/* f_j(q) = Σ α_i K(x_i, q) + Σ λ_e p_e(q) within its bounds, weighted and added to the sums of every query of a job and of every
 * level it needs. */
INLINE void evaluate(const job *J, const int d, const int order, terms_function *terms, slopes_function *slopes)
{
    const st_model *M = J->model;
    const set *S = J->level->set;
    const record *r = J->record;
    const int t = M->t, together = J->level->together, polynomial = r->degree >= 0;
    const long jet = jet_size(d, order), stride = BLOCK + (d <= FEW_FEATURES ? (long)S->rows : 0);
    const long ahead = S->packed ? (long)(S->padded + S->rows) : stride, ahead_x = S->packed ? (long)S->padded : BLOCK;
    const radial *kernel = &M->kernels[r->kernel];
    const double *T = S->turned[r->turn] ? S->turns + (int64_t)r->turn * d * d : NULL, *center = r->numbers, *origin = center + d;
    const bound *bounds = (const bound *)(origin + d);
    const double *stress = S->stress ? S->stress + (int64_t)r->ball * t : NULL;
    const double *packed = (const double *)((const char *)r + S->head), *packed_x = packed + t * ahead;
    double *scratch = J->scratch + (64 - (uintptr_t)J->scratch % 64) / sizeof(double) % LANES;
    const columns C = lay_out(scratch, d, stride);
    double *coefficients = C.b + stride, *points = coefficients + t * stride, *spare = points + d * BLOCK;
    double *vectors = spare + 4 * BLOCK, *u = S->beta ? vectors + (long)t * d * BLOCK : spare; /* these two with β only */
    double *z = u + d, *w = z + d, *back = w + jet, *P = back + (long)d * d;
    const int highest = S->beta && order < 2 ? order + 1 : order;
    double *said = J->scratch + M->scratch; /* (AT_ONCE, t) jets */
    for (long from = 0; from < J->count; from += AT_ONCE) {
        const long few = J->count - from < AT_ONCE ? J->count - from : AT_ONCE;
        for (long i = 0; i < few * t * jet; i++) said[i] = 0.0;
        for (int64_t start = kernel->kind == NONE ? S->h : 0, last = 0; !last; start += BLOCK) {
            const long count = (long)(S->h - start < BLOCK ? S->h - start : BLOCK), n = pad(count);
            const double *alpha = S->packed ? packed + pad(start) : coefficients, *x = S->packed ? packed_x + start : points;
            const double *beta = S->packed ? packed_x + d * S->padded + start : vectors;
            last = start + count == S->h;
            if (!S->packed && (from == 0 || S->h > BLOCK)) {
                copy_coefficients(S, r->ball, start, count, t, coefficients, ahead);
                copy_points(S, r, start, count, d, points, ahead_x);
                if (S->beta) copy_slopes(S, r, start, count, d, t, vectors, ahead_x);
            }
            for (long p = 0; p < few; p++) {
                const double *q = J->Q + (long)J->query[from + p] * d;
                double *f = said + p * t * jet;
                long all = n;
                turn_point(T, q, d, u);
                if (n) find_columns(kernel, C, x, n, ahead_x, r->inverse, u, d, highest, terms);
                if (n && S->beta) slopes(kernel, &C, beta, n, ahead_x, r->inverse, d, t, stress, order, spare, f);
                if (last && polynomial) {
                    for (int k = 0; k < d; k++) u[k] = (q[k] - origin[k]) / r->scale;
                    turn_point(T, u, d, z);
                    if (d <= FEW_FEATURES)
                        all = append_monomials(S, r, C, n, z, d, order);
                    else
                        find_monomials(&S->basis, r->degree, z, P);
                    if (d > FEW_FEATURES || order >= 2)
                        add_polynomial(S, r, stress, d > FEW_FEATURES ? P : C.K + n, d, t, order, f);
                }
                add_outputs(C, alpha, n, all, ahead, r->inverse, d, t, stress, order, f);
            }
        }
        for (long p = 0; p < few; p++) {
            const long query = J->query[from + p];
            const double *q = J->Q + query * d;
            double *f = said + p * t * jet;
            if (T && order >= 1)
                for (int o = 0; o < t; o++) turn_back(f + o * jet, T, d, order, back);
            for (int o = 0; o < t; o++)
                if (f[o * jet] < bounds[o].lower || f[o * jet] > bounds[o].upper) hold(&bounds[o], f + o * jet, d, order);
            for (int o = 0; o < t && stress; o++)
                for (long i = 0; i < jet; i++) f[o * jet + i] *= stress[o];
            const double distance2 = squared_distance(q, center, d);
            for (int l = 0; l < J->depth[query]; l++) {
                const double width = J->level[l].width, radius = width * r->radius;
                double *sums = J->sums + (query * together + l) * (1 + t) * jet;
                if (!(distance2 < radius * radius)) continue;
                weigh_region(M, r, width, q, distance2, d, order, w);
                for (long i = 0; i < jet; i++) sums[i] += w[i];
                for (int o = 0; o < t; o++) add_product(sums + (1 + o) * jet, w, f + o * jet, d, order);
            }
        }
    }
}

/* The numbers that `evaluate` works with, but for what regions say. */
static int64_t scratch_size(const set *S, int64_t d, int64_t t)
{
    const int64_t jet = 1 + d + d * d, ahead = BLOCK + S->rows;
    return LANES + (d + 5 + t) * ahead + (d + (S->beta ? 4 + t * d : 0)) * BLOCK + 2 * d + jet + d * d + S->s;
}

/* And those with what a region says at n queries. */
static int64_t scratch_for(const st_model *M, long n, int order)
{
    return M->scratch + (n < AT_ONCE ? n : AT_ONCE) * M->t * jet_size(M->d, order);
}

/* The same code where loops over features have any length; second derivatives gain little from a known one. */
INLINE void evaluate_any(const job *J, terms_function *terms, slopes_function *slopes)
{
    const int d = J->model->d;
    if (J->order == 0)
        evaluate(J, d, 0, terms, slopes);
    else if (J->order == 1)
        evaluate(J, d, 1, terms, slopes);
    else
        evaluate(J, d, 2, terms, slopes);
}

/* And in two and three dimensions, so that they unroll. */
INLINE void evaluate_in(const job *J, terms_function *terms, slopes_function *slopes)
{
    switch (J->order < 2 ? 2 * J->model->d + J->order : 0) {
    case 4: evaluate(J, 2, 0, terms, slopes); break;
    case 5: evaluate(J, 2, 1, terms, slopes); break;
    case 6: evaluate(J, 3, 0, terms, slopes); break;
    case 7: evaluate(J, 3, 1, terms, slopes); break;
    default: evaluate_any(J, terms, slopes);
    }
}

/* The lower triangle of a symmetric matrix from its upper one. */
INLINE void mirror(double *A, long h)
{
    for (long i = 1; i < h; i++)
        for (long j = 0; j < i; j++) A[i * h + j] = A[j * h + i];
}

/* Squared distances D (h, h) of points whose coordinates are `ahead` numbers apart, and the mean distance of pairs. */
INLINE double distances(long h, long d, const double *restrict Z, long ahead, double *restrict D)
{
    double total = 0.0;
    for (long i = 0; i < h; i++) {
        double *row = D + i * h, sum[LANES] = {0};
        for (long j = i; j < h; j++) row[j] = 0.0;
        for (long k = 0; k < d; k++) {
            const double *z = Z + k * ahead, at = z[i];
            for (long j = i; j < h; j++) row[j] += (z[j] - at) * (z[j] - at);
        }
        long j = i;
        for (; j + LANES <= h; j += LANES)
            for (int l = 0; l < LANES; l++) sum[l] += sqrt(row[j + l]);
        for (; j < h; j++) sum[0] += sqrt(row[j]);
        total += ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
    }
    mirror(D, h);
    return h > 1 ? 2.0 * total / ((double)h * (double)(h - 1)) : 0.0;
}

/* The upper quartile of how far places between the points of a region are from the nearest of them: see `model.gaps`. All places
 * are looked at at once, coordinates first: `at` has room for d * PLACES. */
INLINE double find_gap(const set *S, int64_t ball, long d, double *restrict at)
{
    const int64_t start = ball * S->h, count = S->h < PLACES ? S->h : PLACES;
    double near[PLACES], square[PLACES], distance[PLACES];
    for (int64_t i = 0; i < PLACES; i++) {
        const int64_t first = i < count ? i * S->h / count : 0, second = (first + S->h / 2) % S->h;
        const double *a = S->X + member_at(S, start + first) * d, *b = S->X + member_at(S, start + second) * d;
        const double share = GOLDEN * (double)(i + 1) - floor(GOLDEN * (double)(i + 1));
        for (long k = 0; k < d; k++) at[k * PLACES + i] = a[k] + share * (b[k] - a[k]);
        near[i] = INFINITY;
    }
    for (int64_t j = start; j < start + S->h; j++) {
        const double *x = S->X + member_at(S, j) * d;
        for (int i = 0; i < PLACES; i++) square[i] = 0.0;
        for (long k = 0; k < d; k++)
            for (int i = 0; i < PLACES; i++) square[i] += (at[k * PLACES + i] - x[k]) * (at[k * PLACES + i] - x[k]);
        for (int i = 0; i < PLACES; i++) near[i] = least(square[i], near[i]);
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t place = i; /* sorted as they come */
        for (; place > 0 && distance[place - 1] > near[i]; place--) distance[place] = distance[place - 1];
        distance[place] = near[i];
    }
    return sqrt(distance[3 * count / 4]);
}

/* K (h, h) of a kernel at D / σ². */
INLINE void kernel_matrix(const radial *phi, long h, const double *restrict D, double sigma, double *restrict K,
                          double *restrict row, terms_function *terms)
{
    for (long i = 0; i < h; i++) {
        for (long j = i; j < h; j++) row[j] = D[i * h + j] / (sigma * sigma);
        terms(phi, row + i, h - i, 0, K + i * h + i, NULL, NULL);
    }
    mirror(K, h);
}

/* ---- posterior variances -----------------------------------------------------------------------------------------------------
 * What regions of one kernel say and how sure they are, for `local.blocks`: the formulas are those of `local.factors`. LANES
 * queries are worked on at once: `lanes` are the numbers of one point, row or direction for all of them. */

#ifndef __GNUC__
typedef struct {
    double of[LANES];
} lanes;

INLINE lanes add_times(lanes sum, double a, lanes x)
{
    for (int l = 0; l < LANES; l++) sum.of[l] += a * x.of[l];
    return sum;
}
INLINE lanes add_product_of(lanes sum, lanes x, lanes y)
{
    for (int l = 0; l < LANES; l++) sum.of[l] += x.of[l] * y.of[l];
    return sum;
}
#else
INLINE lanes add_times(lanes sum, double a, lanes x) { return sum + a * x; }
INLINE lanes add_product_of(lanes sum, lanes x, lanes y) { return sum + x * y; }
#endif

#define ROWS 4 /* of the factor that are worked on at once */

/* The arrays of `st_posterior` at one region, with their sizes. */
typedef struct {
    long c, h, d, t, s, r, ahead_x, ahead_z;
    const double *X, *Z, *P, *alpha, *lam, *factor;
} posterior;

/* y = L⁻¹ b in the place of b, for L (h, h) packed row by row, with 1 / L_ii on its diagonal; |y|². */
INLINE lanes solve_rows(long h, const double *restrict L, lanes *restrict b)
{
    const lanes zero = {0};
    lanes square = zero;
    for (long i = 0; i < h; i += ROWS) {
        const long few = h - i < ROWS ? h - i : ROWS;
        const double *row[ROWS];
        lanes sum[ROWS] = {zero, zero, zero, zero};
        for (long a = 0; a < ROWS; a++) {
            const long own = a < few ? i + a : i;
            row[a] = L + own * (own + 1) / 2;
        }
        for (long j = 0; j < i; j++) {
            const lanes y = b[j];
            sum[0] = add_times(sum[0], row[0][j], y), sum[1] = add_times(sum[1], row[1][j], y);
            sum[2] = add_times(sum[2], row[2][j], y), sum[3] = add_times(sum[3], row[3][j], y);
        }
        for (long a = 0; a < few; a++) {
            lanes y = add_times(b[i + a], -1.0, sum[a]);
            for (long k = 0; k < a; k++) y = add_times(y, -row[a][i + k], b[i + k]);
            b[i + a] = add_times(zero, row[a][i + a], y);
            square = add_product_of(square, b[i + a], b[i + a]);
        }
    }
    return square;
}

/* |L⁻¹ b|² of one query, whose numbers are LANES apart in b; they are gathered and solved in y. */
INLINE double solve_one(long h, const double *restrict L, const double *restrict b, double *restrict y)
{
    double square = 0.0;
    for (long i = 0; i < h; L += ++i) {
        const long whole = i / LANES * LANES;
        double sum = dot(L, y, whole);
        for (long j = whole; j < i; j++) sum += L[j] * y[j];
        y[i] = (b[i * LANES] - sum) * L[i];
        square += y[i] * y[i];
    }
    return square;
}

/* Variances of LANES queries with kernels K (h) and monomials p (s); K is written over. */
INLINE lanes find_variance(const posterior *R, const lanes *restrict p, lanes *restrict K, lanes *restrict room)
{
    const long h = R->h, r = R->r;
    const double *L = R->factor, *U = L + h * (h + 1) / 2, *KU = U + h * r, *core = KU + h * r, *back = core + r * r;
    const double *weight = back + R->s * r, ridge = weight[h], range_scale = weight[h + 1];
    const lanes zero = {0};
    lanes *u = room, *Uk = u + r, v;
    for (long a = 0; a < 2 * r; a++) room[a] = zero;
    for (long e = 0; e < R->s; e++)
        for (long a = 0; a < r; a++) u[a] = add_times(u[a], back[e * r + a], p[e]);
    for (long i = 0; i < h; i++) {
        lanes k = add_times(zero, weight[i], K[i]), b = k;
        for (long a = 0; a < r; a++) {
            Uk[a] = add_times(Uk[a], U[i * r + a], k);
            b = add_times(b, -KU[i * r + a], u[a]);
        }
        K[i] = b;
    }
    if (R->c == 1) {
        v = zero;
        *(double *)&v = -solve_one(h, L, (const double *)K, (double *)(room + 2 * r));
    } else
        v = add_times(zero, -1.0, solve_rows(h, L, K));
    for (long a = 0; a < r; a++) {
        lanes own = zero, Ub;
        for (long c = 0; c < r; c++) own = add_times(own, core[c * r + a], u[c]);
        Ub = add_times(add_times(Uk[a], -1.0, own), ridge, u[a]);
        v = add_product_of(v, add_times(own, -2.0, Uk[a]), u[a]);
        v = add_product_of(v, add_times(zero, 1.0 / range_scale, Ub), Ub);
    }
    return v;
}

/* Values f (c, t) and variances v (c) of one region at its queries. */
INLINE void find_posterior(const radial *phi, const posterior *R, double *room, double *restrict f, double *restrict v,
                           terms_function *terms)
{
    const long h = R->h, t = R->t, s = R->s;
    double *K = room, *distance = K + h * LANES, *p = distance + h * LANES, *rest = p + s * LANES;
    const double prior = R->factor[h * (h + 1) / 2 + R->r * (2 * h + R->r + s) + h + 3];
    for (long first = 0; first < R->c; first += LANES) {
        const long few = R->c - first < LANES ? R->c - first : LANES;
        for (long k = 0; k < R->d; k++) {
            double z[LANES];
            for (int l = 0; l < LANES; l++) z[l] = R->Z[k * R->ahead_z + first + (l < few ? l : few - 1)];
            for (long i = 0; i < h; i++)
                for (int l = 0; l < LANES; l++) {
                    const double along = z[l] - R->X[k * R->ahead_x + i];
                    distance[i * LANES + l] = k ? distance[i * LANES + l] + along * along : along * along;
                }
        }
        if (phi->kind == NONE)
            memset(K, 0, sizeof *K * (size_t)(h * LANES));
        else
            terms(phi, distance, h * LANES, 0, K, NULL, NULL);
        for (int l = 0; l < LANES; l++)
            for (long e = 0; e < s; e++) p[e * LANES + l] = R->P[(first + (l < few ? l : few - 1)) * s + e];
        for (long o = 0; o < t; o++) {
            lanes sum = {0};
            for (long i = 0; i < h; i++) sum = add_times(sum, R->alpha[i * t + o], ((const lanes *)K)[i]);
            for (long e = 0; e < s; e++) sum = add_times(sum, R->lam[e * t + o], ((const lanes *)p)[e]);
            for (long l = 0; l < few; l++) f[(first + l) * t + o] = ((const double *)&sum)[l];
        }
        const lanes found = find_variance(R, (const lanes *)p, (lanes *)K, (lanes *)rest);
        for (long l = 0; l < few; l++) v[first + l] = prior + ((const double *)&found)[l];
    }
}

/* Everything that is worth wide registers, once for each kind of processor; which it is, the handle remembers. */
struct engine {
    void (*evaluate)(const job *);
    double (*distances)(long, long, const double *, long, double *);
    void (*kernel)(const radial *, long, const double *, double, double *, double *);
    void (*posterior)(const radial *, const posterior *, double *, double *, double *);
    void (*find)(const ball_tree *, const reach *, const double *, int32_t, hits *);
    double (*gap)(const set *, int64_t, long, double *);
};

#define DEFINE_ENGINE(NAME, TARGET, EVALUATE)                                                                                     \
    TARGET static void terms_##NAME(const radial *phi, const double *s, long n, int order, double *f, double *f1, double *f2)     \
    {                                                                                                                             \
        kernel_terms(phi, s, n, order, f, f1, f2);                                                                                \
    }                                                                                                                             \
    TARGET static void slopes_##NAME(const radial *phi, const columns *C, const double *beta, long n, long ahead, double inverse, \
                                     int d, int t, const double *stress, int order, double *spare, double *f)                     \
    {                                                                                                                             \
        add_slopes(phi, C, beta, n, ahead, inverse, d, t, stress, order, spare, f);                                               \
    }                                                                                                                             \
    TARGET static void evaluate_##NAME(const job *J) { EVALUATE(J, terms_##NAME, slopes_##NAME); }                                \
    TARGET static void find_##NAME(const ball_tree *C, const reach *R, const double *q, int32_t query, hits *H)                   \
    {                                                                                                                             \
        find_balls(C, R, q, query, H);                                                                                            \
    }                                                                                                                             \
    TARGET static double distances_##NAME(long h, long d, const double *Z, long ahead, double *D)                                 \
    {                                                                                                                             \
        return d == 2 ? distances(h, 2, Z, ahead, D) : distances(h, d, Z, ahead, D);                                              \
    }                                                                                                                             \
    TARGET static void kernel_##NAME(const radial *phi, long h, const double *D, double sigma, double *K, double *row)            \
    {                                                                                                                             \
        kernel_matrix(phi, h, D, sigma, K, row, terms_##NAME);                                                                    \
    }                                                                                                                             \
    TARGET static void posterior_##NAME(const radial *phi, const posterior *R, double *room, double *f, double *v)                \
    {                                                                                                                             \
        find_posterior(phi, R, room, f, v, terms_##NAME);                                                                         \
    }                                                                                                                             \
    TARGET static double gap_##NAME(const set *S, int64_t ball, long d, double *at)                                               \
    {                                                                                                                             \
        return d == 2 ? find_gap(S, ball, 2, at) : find_gap(S, ball, d, at);                                                      \
    }                                                                                                                             \
    static const engine engine_##NAME = {evaluate_##NAME,  distances_##NAME, kernel_##NAME,                                       \
                                         posterior_##NAME, find_##NAME,      gap_##NAME};

#ifdef ST_X86
DEFINE_ENGINE(plain, , evaluate_any)
DEFINE_ENGINE(avx2, __attribute__((target("avx2,fma"))), evaluate_in)
#ifdef __clang__
DEFINE_ENGINE(avx512, __attribute__((target("avx512f,avx512dq,avx512vl,avx2,fma"))), evaluate_in)
#else
DEFINE_ENGINE(avx512, __attribute__((target("avx512f,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512"))), evaluate_in)
#endif

/* Asked of the processor itself, since not every compiler brings what its own question needs: leaf 1 says whether the system
 * saves wide registers and whether there is FMA, XCR0 which registers it saves, leaf 7 what they can. */
static const engine *pick_engine(void)
{
    const unsigned fma_saved = 1u << 12 | 1u << 27, avx2 = 1u << 5, avx512 = 1u << 16 | 1u << 17 | 1u << 31; /* F, DQ, VL */
    unsigned a, b, c, d, saved, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & fma_saved) != fma_saved) return &engine_plain;
    __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    if ((saved & 0x6) != 0x6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & avx2)) return &engine_plain;
    return (saved & 0xe0) == 0xe0 && (b & avx512) == avx512 ? &engine_avx512 : &engine_avx2;
}
#else
DEFINE_ENGINE(plain, , evaluate_in)

static const engine *pick_engine(void) { return &engine_plain; }
#endif

/* ---- the stitch -------------------------------------------------------------------------------------------------------------- */

typedef struct {
    double *numbers; /* what is left of them */
    int32_t *indices;
    double *scratch;
    hits hits;
} work;

/* Pairs by place, those of one place in the order of their queries: stable, digit by digit. */
static int sort_hits(hits *H)
{
    const size_t size = sizeof(int32_t) * (size_t)H->count;
    int32_t *place = malloc(size + 1), *query = malloc(size + 1), most = 0;
    if (!place || !query) {
        free(place), free(query);
        return ST_NO_MEMORY;
    }
    for (long i = 0; i < H->count; i++)
        if (H->place[i] > most) most = H->place[i];
    for (int shift = 0; shift < 31 && most >> shift; shift += 11) {
        long start[2049] = {0};
        for (long i = 0; i < H->count; i++) start[(H->place[i] >> shift & 2047) + 1]++;
        for (int k = 0; k < 2048; k++) start[k + 1] += start[k];
        for (long i = 0; i < H->count; i++) {
            long to = start[H->place[i] >> shift & 2047]++;
            place[to] = H->place[i], query[to] = H->query[i];
        }
        memcpy(H->place, place, size), memcpy(H->query, query, size);
    }
    free(place), free(query);
    return ST_OK;
}

/* Ask for the numbers of a region before they are needed: queries in any order wait for memory as long as they compute. */
static void prefetch_record(const set *S, const record *r)
{
#ifdef __GNUC__
    for (size_t i = 0; i < S->stride && i < 4096; i += 64) __builtin_prefetch((const char *)r + i);
#else
    (void)S, (void)r;
#endif
}

/* Σ w_j(q) over the hits from `first` on. */
static double sum_weights(const st_model *M, const level *L, const double *q, const hits *H, long first)
{
    double W = 0.0, w;
    for (long i = first; i < H->count; i++) {
        const record *r = record_at(L->set, H->place[i]);
        weigh_region(M, r, L->width, q, squared_distance(q, r->numbers, M->d), M->d, 0, &w);
        W += w;
    }
    return W;
}

/* Hits of a query in the last of the levels evaluated at once that it needs, and how many these are: those before are quiet. */
static int32_t find_hits(const st_model *M, const level *L, const double *q, int32_t query, hits *H)
{
    const long before = H->count;
    for (int l = 0;; l++) {
        H->count = before;
        M->engine->find(&L->set->ball_tree, &L[l].reach, q, query, H);
        if (H->failed || l + 1 == L->together || !(sum_weights(M, &L[l], q, H, before) < M->handover * L[l].usual)) return l + 1;
    }
}

/* w_b = w_0 u φ(W / τu) from the jet of W < τu, by the chain rule. */
static void weigh_background(const st_model *M, double usual, const double *W, int order, double *w)
{
    const int d = M->d;
    const double x = W[0] / (M->handover * usual);
    double phi[3];
    weigh(&M->weight, x * x, order, phi);
    w[0] = M->w0 * usual * phi[0];
    if (order < 1) return;
    const double slope = x * phi[1] * (M->w0 / M->handover);
    for (int a = 1; a <= d; a++) w[a] = slope * W[a];
    if (order < 2) return;
    const double curvature = (phi[1] + x * x * phi[2]) * (M->w0 / (M->handover * M->handover * usual));
    for (int a = 0; a < d; a++)
        for (int b = 0; b < d; b++) {
            long c = 1 + d + (long)a * d + b;
            w[c] = slope * W[c] + curvature * (W[1 + a] * W[1 + b]);
        }
}

/* F = N / W; from W F = N: ∇F = (∇N - F ∇W) / W, and likewise ∇²F. In the place of N. */
static void divide(double *N, const double *W, int d, int order)
{
    N[0] /= W[0];
    if (order < 1) return;
    for (int a = 1; a <= d; a++) N[a] = (N[a] - N[0] * W[a]) / W[0];
    if (order < 2) return;
    for (int a = 0; a < d; a++)
        for (int b = 0; b < d; b++) {
            long c = 1 + d + (long)a * d + b;
            N[c] = (N[c] - N[0] * W[c] - (N[1 + a] * W[1 + b] + N[1 + b] * W[1 + a])) / W[0];
        }
}

/* What the levels from `first` on say at n points Q, as (n, t) jets.
 * f = (w_b f_0 + Σ w_j f_j) / (w_b + Σ w_j), where f_0 is what the following level says; it is asked where W < τu alone. */
static int stitch(const st_model *M, int first, long n, const double *Q, int order, double *out, work *memory)
{
    const level *L = &M->level[first];
    const int d = M->d, t = M->t, together = L->together, last = first + together == M->depth;
    const long jet = jet_size(d, order), stride = (1 + t) * jet;
    double *sums = memory->numbers, *w = sums + n * together * stride, *queries = w + jet, *behind = queries + n * d;
    int32_t *depth = memory->indices, *quiet = depth + n;
    hits *H = &memory->hits;
    long count = 0;
    H->count = 0;
    for (long i = 0; i < n; i++) depth[i] = find_hits(M, L, Q + i * d, (int32_t)i, H);
    if (H->failed || (n > 1 && sort_hits(H))) return ST_NO_MEMORY;
    memset(sums, 0, sizeof *sums * (size_t)(n * together * stride));
    for (long i = 0, next = 0; i < H->count; i = next) {
        const record *r = record_at(L->set, H->place[i]);
        while (next < H->count && H->place[next] == H->place[i]) next++;
        if (next < H->count) prefetch_record(L->set, record_at(L->set, H->place[next]));
        job J = {M, L, r, H->query + i, next - i, Q, depth, order, sums, memory->scratch};
        M->engine->evaluate(&J);
    }
    for (long i = 0; i < n && !last; i++)
        if (depth[i] == together && sums[((i + 1) * together - 1) * stride] < M->handover * L[together - 1].usual) {
            memcpy(queries + count * d, Q + i * d, sizeof *Q * (size_t)d);
            quiet[count++] = (int32_t)i;
        }
    if (count) {
        work rest = *memory;
        rest.numbers = behind + count * t * jet, rest.indices = quiet + count;
        int status = stitch(M, first + together, count, queries, order, behind, &rest);
        *H = rest.hits;
        if (status) return status;
    }
    for (long i = 0, asked = 0; i < n; i++) {
        double *f = out + i * t * jet;
        int known = count > asked && quiet[asked] == i;
        if (known) memcpy(f, behind + asked++ * t * jet, sizeof *f * (size_t)(t * jet));
        for (int l = depth[i] - 1; l >= 0; l--, known = 1) {
            double *W = sums + (i * together + l) * stride, *N = W + jet;
            if (known) {
                weigh_background(M, L[l].usual, W, order, w);
                for (int o = 0; o < t; o++) add_product(N + o * jet, w, f + o * jet, d, order);
                for (long k = 0; k < jet; k++) W[k] += w[k];
            }
            for (int o = 0; o < t; o++) divide(N + o * jet, W, d, order);
            memcpy(f, N, sizeof *f * (size_t)(t * jet));
        }
    }
    return ST_OK;
}

/* ---- charts ------------------------------------------------------------------------------------------------------------------
 * A feature of period p has the place (p / 2π) (cos θ, sin θ), θ = 2π x / p, and longitude λ and latitude φ have
 * (180 / π) (cos φ cos λ, cos φ sin λ, sin φ), in three coordinates that stand where the longitude does. */

#define TURN 6.283185307179586
#define DEGREES 360.0
#define LEAST_PERIOD 1e-150

/* 2π x / p from -π to π, equal where values differ by whole periods. */
static double angle(double x, double period)
{
    double rest = fmod(x, period);
    if (rest > 0.5 * period)
        rest -= period;
    else if (rest <= -0.5 * period)
        rest += period;
    return rest * (TURN / period);
}

/* Cosine and sine of the longitude and the latitude. */
typedef struct {
    double c, s, C, S;
} globe;

static globe on_globe(const chart *T, const double *x)
{
    const double lambda = angle(x[T->longitude], DEGREES), phi = x[T->latitude] * (TURN / DEGREES);
    const globe at = {cos(lambda), sin(lambda), cos(phi), sin(phi)};
    return at;
}

/* The place of x, in `room` unless it is x itself. */
static const double *place(const chart *T, const double *x, double *room)
{
    if (!T->period) return x;
    for (int k = 0; k < T->count; k++) {
        double *e = room + T->column[k];
        if (k == T->latitude) continue;
        if (k == T->longitude) {
            const globe at = on_globe(T, x);
            const double radius = DEGREES / TURN;
            e[0] = radius * (at.C * at.c), e[1] = radius * (at.C * at.s), e[2] = radius * at.S;
        } else if (T->period[k] > 0.0) {
            const double theta = angle(x[k], T->period[k]), radius = T->period[k] / TURN;
            e[0] = radius * cos(theta), e[1] = radius * sin(theta);
        } else
            e[0] = x[k];
    }
    return room;
}

/* J (d, count): first derivatives of the place by the features. */
static void differentiate_place(const chart *T, const double *x, int d, double *J)
{
    const int n = T->count;
    memset(J, 0, sizeof *J * (size_t)d * (size_t)n);
    for (int k = 0; k < n; k++) {
        double *column = J + (long)T->column[k] * n + k;
        if (k == T->latitude) continue;
        if (k == T->longitude) {
            const globe at = on_globe(T, x);
            double *north = column - k + T->latitude;
            column[0] = -at.C * at.s, column[n] = at.C * at.c;
            north[0] = -at.S * at.c, north[n] = -at.S * at.s, north[2 * n] = at.C;
        } else if (T->period[k] > 0.0) {
            const double theta = angle(x[k], T->period[k]);
            column[0] = -sin(theta), column[n] = cos(theta);
        } else
            column[0] = 1.0;
    }
}

/* H (count, count) += Σ g_k ∇²e_k for a gradient g by the place e. */
static void add_bend(const chart *T, const double *x, const double *g, double *H)
{
    const int n = T->count;
    for (int k = 0; k < n; k++) {
        const double *own = g + T->column[k];
        if (k == T->longitude) {
            const globe at = on_globe(T, x);
            const int l = T->latitude;
            const double outward = at.c * own[0] + at.s * own[1], along = at.c * own[1] - at.s * own[0], unit = TURN / DEGREES;
            H[(long)k * n + k] -= unit * at.C * outward;
            H[(long)k * n + l] -= unit * at.S * along;
            H[(long)l * n + k] -= unit * at.S * along;
            H[(long)l * n + l] -= unit * (at.C * outward + at.S * own[2]);
        } else if (T->period[k] > 0.0) {
            const double theta = angle(x[k], T->period[k]);
            H[(long)k * n + k] -= TURN / T->period[k] * (cos(theta) * own[0] + sin(theta) * own[1]);
        }
    }
}

/* Gradient G (count) and Hessian H (count, count), or NULL, by the features at x from the jet f by the place: ∇ = Jᵀ ∇ and
 * ∇² = Jᵀ ∇² J + Σ g_k ∇²e_k. `spare` has room for (d, count). */
static void pull_back(const chart *T, const double *x, const double *J, const double *f, int d, double *G, double *H, double *spare)
{
    const int n = T->count;
    const double *g = f + 1, *inner = g + d;
    for (int a = 0; a < n && G; a++) {
        G[a] = 0.0;
        for (int k = 0; k < d; k++) G[a] += J[(long)k * n + a] * g[k];
    }
    if (!H) return;
    memset(spare, 0, sizeof *spare * (size_t)d * (size_t)n);
    memset(H, 0, sizeof *H * (size_t)n * (size_t)n);
    for (int k = 0; k < d; k++)
        for (int l = 0; l < d; l++)
            for (int b = 0; b < n; b++) spare[(long)k * n + b] += inner[(long)k * d + l] * J[(long)l * n + b];
    for (int k = 0; k < d; k++)
        for (int a = 0; a < n; a++)
            for (int b = 0; b < n; b++) H[(long)a * n + b] += J[(long)k * n + a] * spare[(long)k * n + b];
    add_bend(T, x, g, H);
}

/* u = (x - shift) A */
static void map_point(const st_model *M, const double *x, double *u)
{
    const int d = M->d;
    for (int k = 0; k < d; k++) {
        u[k] = M->diagonal ? (x[k] - M->shift[k]) * M->A[(long)k * d + k] : 0.0;
        if (!M->diagonal)
            for (int a = 0; a < d; a++) u[k] += (x[a] - M->shift[a]) * M->A[(long)a * d + k];
    }
}

/* From a jet of z = log y to that of y: ∇y = y ∇z, ∇²y = y (∇²z + ∇z ∇zᵀ). */
static void exponentiate(double *f, int d, int order)
{
    const double y = exp(f[0]);
    if (order >= 2)
        for (int a = 0; a < d; a++)
            for (int b = 0; b < d; b++) {
                double *H = &f[1 + d + (long)a * d + b];
                *H = y * (*H + f[1 + a] * f[1 + b]);
            }
    if (order >= 1)
        for (int a = 0; a < d; a++) f[1 + a] *= y;
    f[0] = y;
}

/* From a jet in u to that by the place x: ∇_x = A ∇_u, then the bounds of places and those of answers. */
static void finish(const st_model *M, int output, const double *first, const double *second, double *f, int order, double *spare)
{
    const int d = M->d;
    if (order >= 1) turn_back(f, M->A, d, order, spare);
    if (order >= 2)
        for (int a = 0; a < d; a++)
            for (int b = 0; b < d; b++) {
                double *H = &f[1 + d + (long)a * d + b];
                *H = *H * first[a] * first[b] + (a == b ? f[1 + a] * second[a] : 0.0);
            }
    if (order >= 1)
        for (int a = 0; a < d; a++) f[1 + a] *= first[a];
    hold(&M->answers[output], f, d, order);
    if (M->log) exponentiate(f, d, order);
}

/* ---- questions --------------------------------------------------------------------------------------------------------------- */

/* Numbers that n queries at once need, beside the scratch of `evaluate`. */
static int64_t numbers_needed(const st_model *M, long n, int order)
{
    const int64_t d = M->d, jet = jet_size(M->d, order), J = M->chart.period ? d * M->chart.count : 0;
    return J + n * (M->t * jet + 3 * d) + d * d + d + M->depth * (n * ((1 + 2 * M->t) * jet + d) + jet);
}

static long chunk_size(const st_model *M, int order)
{
    long n = CHUNK;
    while (n > LANES && numbers_needed(M, n, order) > 1 << 18) n /= 2;
    return n;
}

/* Answers for rows row[0…n) of X, or the first n. */
static int answer(const st_model *M, long n, const int32_t *row, const double *X, int order, double *F, double *G, double *H,
                  work *memory)
{
    const chart *T = &M->chart;
    const int d = M->d, t = M->t, features = T->count;
    const long jet = jet_size(d, order);
    double *inside = memory->numbers, *first = inside + n * d, *second = first + n * d, *found = second + n * d;
    double *spare = found + n * t * jet, *J = spare + (long)d * d + d;
    work rest = *memory;
    rest.numbers = T->period ? J + (long)d * features : J;
    for (long i = 0; i < n; i++) {
        const double *e = place(T, X + (row ? (long)row[i] : i) * features, spare + d);
        for (int k = 0; k < d; k++) spare[k] = saturate(&M->places[k], e[k], &first[i * d + k], &second[i * d + k]);
        map_point(M, spare, inside + i * d);
    }
    int status = stitch(M, 0, n, inside, order, found, &rest);
    memory->hits = rest.hits;
    if (status) return status;
    for (long i = 0; i < n; i++) {
        const long at = row ? (long)row[i] : i;
        if (T->period && order >= 1) differentiate_place(T, X + at * features, d, J);
        for (int o = 0; o < t; o++) {
            const long to = at * t + o;
            double *f = found + (i * t + o) * jet, *g = G ? G + to * features : NULL, *h = H ? H + to * features * features : NULL;
            finish(M, o, first + i * d, second + i * d, f, order, spare);
            F[to] = f[0];
            if (T->period) {
                if (order >= 1) pull_back(T, X + at * features, J, f, d, g, h, spare);
                continue;
            }
            if (g) memcpy(g, f + 1, sizeof *g * (size_t)d);
            if (h) memcpy(h, f + 1 + d, sizeof *h * (size_t)d * (size_t)d);
        }
    }
    return ST_OK;
}

static int check_question(const st_model *M, long n, const double *X, const double *F, int order)
{
    if (!M || (n > 0 && (!X || !F))) return ST_NULL;
    if (!is_open(M)) return ST_CLOSED;
    if (n < 0) return ST_COUNT;
    if (order > 0 && order > M->smoothness) return ST_NOT_SMOOTH;
    const chart *T = &M->chart;
    for (long i = 0; i < n * T->count; i++)
        if (!(X[i] - X[i] == 0.0)) return ST_NOT_FINITE;
    for (long i = 0; i < n && T->latitude >= 0; i++)
        if (fabs(X[i * T->count + T->latitude]) > 90.0) return ST_LATITUDE;
    return ST_OK;
}

enum { FEW_NUMBERS = 5120, FEW_HITS = 512, FEW_INDICES = 2 * MOST_LEVELS };

static int ask_one(const st_model *M, const double *x, int order, double *f, double *g, double *H)
{
    double numbers[FEW_NUMBERS], *more = NULL;
    int32_t indices[FEW_INDICES], place[FEW_HITS], query[FEW_HITS];
    int status = check_question(M, 1, x, f, order);
    if (status) return status;
    const int64_t scratch = scratch_for(M, 1, order), needed = scratch + numbers_needed(M, 1, order);
    if (needed > FEW_NUMBERS && !(more = malloc(sizeof *more * (size_t)needed))) return ST_NO_MEMORY;
    work memory = {(more ? more : numbers) + scratch, indices, more ? more : numbers, {place, query, 0, FEW_HITS, 0, 0}};
    status = answer(M, 1, NULL, x, order, f, g, H, &memory);
    if (memory.hits.owned) free(memory.hits.place), free(memory.hits.query);
    free(more);
    return status;
}

int st_value(const st_model *M, const double *x, double *f) { return ask_one(M, x, 0, f, NULL, NULL); }

int st_gradient(const st_model *M, const double *x, double *f, double *g) { return g ? ask_one(M, x, 1, f, g, NULL) : ST_NULL; }

int st_hessian(const st_model *M, const double *x, double *f, double *g, double *H)
{
    return g && H ? ask_one(M, x, 2, f, g, H) : ST_NULL;
}

int st_batch(const st_model *M, long n, const double *X, double *F, double *G, double *H)
{
    const int order = H ? 2 : G ? 1 : 0;
    int status = check_question(M, n, X, F, order);
    if (status || n == 0) return status;
    if (n == 1) return ask_one(M, X, order, F, G, H);
    const long chunk = chunk_size(M, order), sorted = n < SORTED ? n : SORTED, features = M->chart.count;
    const int64_t scratch = scratch_for(M, chunk, order);
    const size_t needed = (size_t)(scratch + numbers_needed(M, chunk, order) + sorted * M->d);
    double *numbers = malloc(sizeof *numbers * needed);
    int32_t *indices = malloc(sizeof *indices * (size_t)(2 * M->depth * chunk + sorted));
    work memory = {NULL, indices, numbers, {NULL, NULL, 0, 16 * chunk, 1, 0}};
    memory.hits.place = malloc(sizeof(int32_t) * (size_t)memory.hits.capacity);
    memory.hits.query = malloc(sizeof(int32_t) * (size_t)memory.hits.capacity);
    if (!numbers || !indices || !memory.hits.place || !memory.hits.query) status = ST_NO_MEMORY;
    for (long start = 0; start < n && !status; start += sorted) {
        const long count = n - start < sorted ? n - start : sorted;
        double *U = numbers + scratch;
        int32_t *row = indices;
        for (long i = 0; i < count; i++) {
            row[i] = (int32_t)i;
            map_point(M, place(&M->chart, X + (start + i) * features, U + sorted * M->d), U + i * M->d);
        }
        if (count > chunk) order_in_space(row, 0, count, chunk, U, M->d);
        memory.numbers = U + sorted * M->d, memory.indices = row + sorted;
        for (long i = 0; i < count && !status; i += chunk)
            status = answer(M, count - i < chunk ? count - i : chunk, row + i, X + start * features, order, F + start * M->t,
                            G ? G + start * M->t * features : NULL, H ? H + start * M->t * features * features : NULL, &memory);
    }
    free(numbers), free(indices), free(memory.hits.place), free(memory.hits.query);
    return status;
}

/* Distance of a query from the nearest of the points of a ball. */
static double nearest_point(const set *S, int64_t ball, const double *q, int d)
{
    double square = INFINITY;
    for (int64_t i = ball * S->h; i < (ball + 1) * S->h; i++)
        square = least(squared_distance(q, S->X + member_at(S, i) * d, d), square);
    return sqrt(square);
}

/* One up to `begin`, zero from `end`, a smooth step between. */
static double fall(double x, double begin, double end)
{
    const double t = least(greatest((end - x) / (end - begin), 0.0), 1.0);
    return t * t * (3.0 - 2.0 * t);
}

/* How near the points of the regions that were found are, with that region first whose centre is nearest: see `model.coverage`. */
static double nearness(const st_model *M, const double *u, const hits *H)
{
    const set *S = M->set;
    double rho, closest = INFINITY, found = 0.0;
    long first = 0;
    for (long i = 0; i < H->count; i++) {
        const record *r = record_at(S, H->place[i]);
        rho = sqrt(squared_distance(u, r->numbers, M->d)) / r->radius;
        if (rho < closest) closest = rho, first = i;
    }
    for (long i = 0; i < H->count; i++) {
        const record *r = record_at(S, H->place[i == 0 ? first : i == first ? 0 : i]);
        rho = sqrt(squared_distance(u, r->numbers, M->d)) / r->radius;
        const double inside = fall(rho, M->level[0].width, M->wide.width);
        if (inside > found)
            found = greatest(inside * fall(nearest_point(S, r->ball, u, M->d) / S->gaps[r->ball], COVERED_GAPS, EMPTY_GAPS), found);
    }
    return found;
}

/* The share of the answer that comes from regions, times how near their points are: see `model.coverage`. */
static int cover(const st_model *M, const double *x, double *u, double *c, hits *H)
{
    const set *S = M->set;
    double left = 1.0, share = 0.0;
    map_point(M, place(&M->chart, x, u + M->d), u);
    H->count = 0;
    M->engine->find(&S->ball_tree, &M->wide.reach, u, 0, H);
    const double near = nearness(M, u, H);
    for (int l = 0; l < M->own && !H->failed; l++) {
        const level *L = &M->level[l];
        double phi[3];
        H->count = 0;
        M->engine->find(&S->ball_tree, &L->reach, u, 0, H);
        const double W = sum_weights(M, L, u, H, 0);
        const double ratio = W / (M->handover * L->usual);
        weigh(&M->weight, ratio * ratio, 0, phi);
        const double w_b = M->w0 * L->usual * phi[0], now = left * (w_b / (W + w_b));
        share += (l == 0 ? 1.0 : NEARLY) * (left - now);
        left = now;
    }
    *c = near * share;
    return H->failed ? ST_NO_MEMORY : ST_OK;
}

int st_coverages(const st_model *M, long n, const double *X, double *C)
{
    int32_t place[FEW_HITS], query[FEW_HITS];
    hits H = {place, query, 0, FEW_HITS, 0, 0};
    double numbers[128], *u = numbers; /* a point of the space of the regions, and its place */
    int status = check_question(M, n, X, C, 0);
    if (status || n == 0) return status;
    if (M->d > 64 && !(u = malloc(sizeof *u * 2 * (size_t)M->d))) return ST_NO_MEMORY;
    for (long i = 0; i < n && !status; i++) status = cover(M, X + i * M->chart.count, u, C + i, &H);
    if (H.owned) free(H.place), free(H.query);
    if (u != numbers) free(u);
    return status;
}

int st_coverage(const st_model *M, const double *x, double *c) { return st_coverages(M, 1, x, c); }

int st_features(const st_model *M) { return M && is_open(M) ? M->chart.count : -1; }

int st_outputs(const st_model *M) { return M && is_open(M) ? M->t : -1; }

int st_smoothness(const st_model *M) { return M && is_open(M) ? M->smoothness : -1; }

int st_expect(const st_model *M, int features, int outputs)
{
    if (!M) return ST_NULL;
    if (!is_open(M)) return ST_CLOSED;
    return M->chart.count == features && M->t == outputs ? ST_OK : ST_OTHER_MODEL;
}

const char *st_message(int status)
{
    switch (status) {
    case ST_OK: return "success";
    case ST_NULL: return "an argument is NULL that must not be";
    case ST_CLOSED: return "this is not an open model: it was closed, or never opened";
    case ST_NOT_FINITE: return "a query is NaN or infinite";
    case ST_NOT_SMOOTH: return "the model has no derivatives of that order: fit it with a smoother weight and kernel";
    case ST_COUNT: return "the number of queries is negative";
    case ST_OTHER_MODEL: return "the model has another number of features or outputs than expected";
    case ST_NO_MEMORY: return "there is not enough memory";
    case ST_NO_FILE: return "there is no such file, or it cannot be read";
    case ST_NOT_A_MODEL: return "the file is not a stitchwork model, or it is truncated: save the model again";
    case ST_OLD_FORMAT: return "the file has an older format, which this library does not read: fit and save the model again";
    case ST_NEW_FORMAT: return "the file has a newer format: use the library of the stitchwork that saved it";
    case ST_DAMAGED: return "the checksum differs, so the file was damaged or changed: save the model again";
    case ST_CONTENT: return "a size, an index or a number in the model makes no sense: save the model again";
    case ST_PLATFORM: return "this machine does not store numbers as the file does";
    case ST_ALIGNMENT: return "the bytes of a file in memory must begin at a multiple of eight";
    case ST_NO_FACTORS: return "the file has no factors of regions, which standard deviations need: save it with factors=True";
    case ST_LATITUDE: return "a latitude is beyond a pole: it must be from -90 to 90 degrees";
    default: return "unknown status";
    }
}

/* ---- reading ------------------------------------------------------------------------------------------------------------------
 * Whatever is read is checked, every index and size, whether the file is what it was when it was saved or not. */

typedef struct {
    const char *name;
    size_t length;
    st_array array;
} entry;

typedef struct {
    st_model *model;
    const entry *entries;
    long count;
    int status;
} reader;

static void *own(st_model *M, size_t size)
{
    void *memory = calloc(size ? size : 1, 1), **owned = realloc(M->owned, sizeof *owned * (size_t)(M->owned_count + 1));
    if (owned) M->owned = owned;
    if (!memory || !owned) {
        free(memory);
        return NULL;
    }
    M->owned[M->owned_count++] = memory;
    return memory;
}

/* Room for count numbers of some size, or NULL, which the status tells. */
static void *room(reader *R, int64_t count, size_t size)
{
    void *memory = NULL;
    if (!R->status && count >= 0 && (uint64_t)count < SIZE_MAX / size / 2) memory = own(R->model, (size_t)count * size);
    if (!memory && !R->status) R->status = ST_NO_MEMORY;
    return memory;
}

static const st_array *find(const reader *R, const char *name)
{
    for (long i = 0; i < R->count; i++)
        if (strlen(name) == R->entries[i].length && !memcmp(name, R->entries[i].name, R->entries[i].length))
            return &R->entries[i].array;
    return NULL;
}

static const st_array *find_in(const reader *R, const char *format, ...)
{
    char name[96];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    return find(R, name);
}

static const void *refuse(reader *R)
{
    if (!R->status) R->status = ST_CONTENT;
    return NULL;
}

/* The data of an array of this kind and shape, where -1 may be any size; NULL if it is another. */
static const void *take(reader *R, const st_array *array, char kind, int dimensions, int64_t a, int64_t b, int64_t c)
{
    const int64_t shape[3] = {a, b, c};
    if (R->status || !array || array->kind != kind || array->dimensions != dimensions || !array->data) return refuse(R);
    for (int k = 0; k < dimensions; k++)
        if (array->shape[k] < 1 || (shape[k] >= 0 && array->shape[k] != shape[k])) return refuse(R);
    return array->data;
}

static int64_t size_of(const st_array *array)
{
    int64_t size = 1;
    for (int k = 0; k < array->dimensions; k++) size *= array->shape[k];
    return size;
}

/* The same in 64 bits, where it may be stored in 32. */
static const void *take_wide(reader *R, const st_array *array, char kind, int dimensions, int64_t a, int64_t b, int64_t c)
{
    const char narrow = kind == 'f' ? 'F' : 'I';
    if (!array || array->kind != narrow) return take(R, array, kind, dimensions, a, b, c);
    const void *data = take(R, array, narrow, dimensions, a, b, c);
    void *wide = data ? room(R, size_of(array), 8) : NULL;
    if (!wide) return NULL;
    for (int64_t i = 0; i < size_of(array); i++)
        if (kind == 'f')
            ((double *)wide)[i] = (double)((const float *)data)[i];
        else
            ((int64_t *)wide)[i] = ((const int32_t *)data)[i];
    return wide;
}

static const double *take_finite(reader *R, const st_array *array, int dimensions, int64_t a, int64_t b, int64_t c)
{
    const double *x = take_wide(R, array, 'f', dimensions, a, b, c);
    double check = 0.0;
    if (!x) return NULL;
    for (int64_t i = 0; i < size_of(array); i++) check += x[i] - x[i]; /* zero, or NaN */
    return check == 0.0 ? x : refuse(R);
}

static const double *take_positive(reader *R, const st_array *array, int dimensions, int64_t a, int64_t b, int64_t c)
{
    const double *x = take_finite(R, array, dimensions, a, b, c);
    if (!x) return NULL;
    for (int64_t i = 0; i < size_of(array); i++)
        if (!(x[i] > 0.0)) return refuse(R);
    return x;
}

static const int64_t *take_indices(reader *R, const st_array *array, int dimensions, int64_t a, int64_t b, int64_t lowest,
                                   int64_t below)
{
    const int64_t *x = take_wide(R, array, 'i', dimensions, a, b, -1);
    int64_t wrong = 0;
    if (!x) return NULL;
    for (int64_t i = 0; i < size_of(array); i++) wrong |= (x[i] < lowest) | (x[i] >= below);
    return wrong ? refuse(R) : x;
}

static int starts_with(const char **text, const char *start)
{
    size_t length = strlen(start);
    if (strncmp(*text, start, length)) return 0;
    *text += length;
    return 1;
}

static int make_weight(radial *phi, const char *name, int d)
{
    if (!strcmp(name, "truncated-gaussian")) {
        phi->kind = CUT_GAUSSIAN, phi->smoothness = -1;
        return ST_OK;
    }
    int order = 0, digits = 0;
    if (!starts_with(&name, "wendland-c")) return ST_CONTENT;
    for (; *name >= '0' && *name <= '9' && digits < 4; name++, digits++) order = 10 * order + (*name - '0');
    int native = starts_with(&name, "-native");
    if (*name || !digits || order % 2 || order > 2 * MOST_ORDER) return ST_CONTENT;
    make_wendland(phi, (native ? d : 3) / 2 + order / 2 + 1, order / 2);
    phi->smoothness = order;
    return ST_OK;
}

static int make_kernel(radial *phi, const char *name, size_t length, int d)
{
    static const struct {
        const char *name;
        enum kind kind;
        int smoothness;
    } known[] = {
        {"none", NONE, ANY_SMOOTH},
        {"gaussian", GAUSSIAN, ANY_SMOOTH},
        {"matern32", MATERN32, 2},
        {"matern52", MATERN52, 4},
        {"matern72", MATERN72, 6},
        {"exponential", EXPONENTIAL, 0},
        {"soft-exponential", SOFT_EXPONENTIAL, ANY_SMOOTH},
        {"multiquadric", MULTIQUADRIC, ANY_SMOOTH},
        {"linear", LINEAR, 0},
        {"thin-plate", THIN_PLATE, 1},
        {"cubic", CUBIC, 2},
        {"quintic", QUINTIC, 4},
        {"wendland", WENDLAND, 2},
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (strlen(known[k].name) == length && !memcmp(known[k].name, name, length)) {
            phi->kind = known[k].kind, phi->smoothness = known[k].smoothness;
            if (phi->kind == WENDLAND) make_wendland(phi, d / 2 + 2, 1);
            return ST_OK;
        }
    return ST_CONTENT;
}

/* The kernels of a list of names with commas between; their number. */
static int64_t make_kernels(reader *R, const char *names)
{
    int64_t count = 1;
    for (const char *c = names; *c; c++) count += *c == ',';
    R->model->kernels = room(R, count, sizeof(radial));
    for (int64_t k = 0; k < count && !R->status; k++) {
        size_t length = strcspn(names, ",");
        R->status = make_kernel(&R->model->kernels[k], names, length, R->model->d);
        names += length + 1;
    }
    return count;
}

static void make_basis(reader *R, basis *B, int64_t d, int64_t degree, int64_t s)
{
    B->count = room(R, degree + 2, sizeof *B->count);
    B->parent = room(R, s, sizeof *B->parent), B->variable = room(R, s, sizeof *B->variable);
    B->raised = room(R, d * s, sizeof *B->raised), B->factor = room(R, d * s, sizeof *B->factor);
    int32_t *child = room(R, s, sizeof *child), next = 1;
    if (R->status || degree < 0) return;
    B->count[1] = 1;
    for (int64_t k = 1; k <= degree; k++) {
        for (int32_t p = B->count[k - 1]; p < B->count[k]; p++) {
            child[p] = next;
            for (int32_t v = B->variable[p]; v < d; v++, next++) B->parent[next] = p, B->variable[next] = v;
        }
        B->count[k + 1] = next;
    }
    for (int32_t e = 0; e < B->count[degree]; e++)
        for (int32_t v = 0; v < d; v++) {
            B->raised[v * s + e] = raise(B, child, e, v);
            B->factor[v * s + e] = 1.0;
            for (int32_t p = e; p; p = B->parent[p]) B->factor[v * s + e] += B->variable[p] == v;
        }
}

/* Balls in groups of eight, and these in groups. */
static void make_ball_tree(reader *R, set *S, int d)
{
    ball_tree *C = &S->ball_tree;
    C->d = d;
    for (int64_t count = S->m; C->tiers == 0 || count > 1; C->tiers++) {
        count = (count + LANES - 1) / LANES;
        C->tier[C->tiers].blocks = (long)count;
        C->tier[C->tiers].centers = room(R, count * d * LANES, sizeof(double));
    }
    C->ball = room(R, (int64_t)C->tier[0].blocks * LANES, sizeof *C->ball);
    if (R->status) return;
    for (int32_t j = 0; j < S->m; j++) C->ball[j] = j;
    order_in_space(C->ball, 0, S->m, LANES, S->centers, d);
    for (int64_t place = 0; place < S->m; place++)
        for (int k = 0; k < d; k++)
            C->tier[0].centers[(place / LANES * d + k) * LANES + place % LANES] = S->centers[(int64_t)C->ball[place] * d + k];
    int64_t below = S->m; /* balls or groups of the tier below, and how many balls each has */
    int64_t balls = LANES;
    for (int i = 1; i < C->tiers; i++, balls *= LANES) {
        below = (below + LANES - 1) / LANES;
        for (int64_t group = 0; group < below; group++) {
            const int64_t first = group * balls, last = first + balls < S->m ? first + balls : S->m;
            for (int k = 0; k < d; k++) {
                double least_x = INFINITY, most_x = -INFINITY;
                for (int64_t place = first; place < last; place++) {
                    const double x = S->centers[(int64_t)C->ball[place] * d + k];
                    least_x = least(x, least_x), most_x = greatest(x, most_x);
                }
                C->tier[i].centers[(group / LANES * d + k) * LANES + group % LANES] = 0.5 * least_x + 0.5 * most_x;
            }
        }
    }
}

/* How far balls of `width` times their radii, and the groups of them, extend. */
static void make_reach(reader *R, reach *far, const set *S, double width)
{
    const ball_tree *C = &S->ball_tree;
    const int d = C->d;
    int64_t below = S->m, balls = 1;
    for (int i = 0; i < C->tiers && !R->status; i++, balls *= LANES, below = (below + LANES - 1) / LANES) {
        double *bound = far->bound[i] = room(R, (int64_t)C->tier[i].blocks * LANES, sizeof(double));
        if (!bound) return;
        for (int64_t group = below; group < (int64_t)C->tier[i].blocks * LANES; group++) bound[group] = -1.0;
        for (int64_t group = 0; group < below; group++) {
            const double *g = C->tier[i].centers + group / LANES * d * LANES + group % LANES;
            const int64_t first = group * balls, last = first + balls < S->m ? first + balls : S->m;
            double most = 0.0;
            for (int64_t place = first; place < last; place++) {
                const double *c = S->centers + (int64_t)C->ball[place] * d;
                double sum = 0.0;
                for (int k = 0; k < d && i > 0; k++) sum += (c[k] - g[k * LANES]) * (c[k] - g[k * LANES]);
                most = greatest(sqrt(sum) + width * S->radii[C->ball[place]], most);
            }
            bound[group] = i > 0 ? most * most * (1.0 + 1e-12) : most * most; /* with room for rounding */
        }
    }
}

/* Points by every turn that changes something. */
static void make_turned(reader *R, set *S, int64_t count, int d)
{
    for (int64_t k = 0; k < count && !R->status; k++) {
        const double *T = S->turns + k * d * d;
        int changes = 0;
        for (int a = 0; a < d; a++)
            for (int b = 0; b < d; b++) changes |= T[a * d + b] != (a == b ? 1.0 : 0.0);
        if (!changes) continue;
        double *X = room(R, S->n * d, sizeof *X);
        if (!X) return;
        for (int64_t i = 0; i < S->n; i++)
            for (int b = 0; b < d; b++)
                for (int a = 0; a < d; a++) X[i * d + b] += S->X[i * d + a] * T[a * d + b];
        S->turned[k] = X;
    }
}

/* Bounds of what region j says of output o: those of `bound_answers`, with a least range. */
static bound bound_region(const set *S, int64_t j, int o, int t)
{
    const bound free = {-INFINITY, INFINITY, 0.0};
    if (!S->extremes) return free;
    const double low = S->extremes[j * t + o], high = S->extremes[(S->m + j) * t + o];
    return bound_between(low, high, 1.0, MARGIN * LEAST_RANGE * greatest(fabs(low), fabs(high)));
}

/* Extremes of the responses of each region's points: stored, or found where the file is older than they are. */
static void read_extremes(reader *R, set *S, int k, int t)
{
    const st_array *stored = find_in(R, "regions%d/extremes", k), *own = find_in(R, "regions%d/X", k);
    if (stored) {
        const double *x = S->extremes = take_finite(R, stored, 3, 2, S->m, t);
        for (int64_t i = 0; i < S->m * t && x; i++)
            if (!(x[i] <= x[S->m * t + i])) refuse(R);
        return;
    }
    const double *y = take_finite(R, own ? find_in(R, "regions%d/y", k) : find(R, "points/y"), 2, S->n, t, -1);
    double *found = room(R, 2 * S->m * t, sizeof *found);
    if (R->status) return;
    for (int64_t j = 0; j < S->m; j++)
        for (int o = 0; o < t; o++) {
            double low = INFINITY, high = -INFINITY;
            for (int64_t i = 0; i < S->h; i++) {
                const double at = y[member_at(S, j * S->h + i) * t + o];
                low = least(at, low), high = greatest(at, high);
            }
            found[j * t + o] = low, found[(S->m + j) * t + o] = high;
        }
    S->extremes = found;
}

/* One share for each model of a ball, or for each output and model: then its mean is the share in the weight of the ball, and the
 * others are in units of it. Those of the models of a ball sum to one. */
static void read_shares(reader *R, set *S, int k, int t)
{
    const st_array *share = find_in(R, "regions%d/share", k);
    S->per_ball = 1;
    if (!share) return;
    const int64_t *together = take_indices(R, find_in(R, "regions%d/together", k), 1, 1, -1, 1, S->m + 1);
    if (R->status) return;
    S->per_ball = *together;
    if (share->dimensions != 2) {
        S->share = take_finite(R, share, 1, S->m, -1, -1);
        for (int64_t j = 0; j < S->m && !R->status; j++)
            if (!(S->share[j] >= 0.0)) refuse(R);
        return;
    }
    const double *given = take_finite(R, share, 2, S->m, t, -1);
    double *mean = room(R, S->m, sizeof *mean), *stress = room(R, S->m * t, sizeof *stress);
    if (R->status) return;
    if (S->m % *together) refuse(R);
    for (int64_t j = 0; j < S->m && !R->status; j++) {
        for (int o = 0; o < t; o++) {
            if (!(given[j * t + o] >= 0.0)) refuse(R);
            mean[j] += given[j * t + o] / t;
        }
        for (int o = 0; o < t; o++) stress[j * t + o] = mean[j] > 0.0 ? given[j * t + o] / mean[j] : 0.0;
    }
    for (int64_t j = 0; j < S->m && !R->status; j += *together)
        for (int o = 0; o < t; o++) {
            double sum = 0.0;
            for (int64_t i = j; i < j + *together; i++) sum += given[i * t + o];
            if (!(fabs(sum - 1.0) < 1e-4)) refuse(R);
        }
    S->share = mean, S->stress = stress;
}

/* Bytes up to a multiple of a cache line. */
static size_t whole_lines(size_t bytes) { return (bytes + 63) / 64 * 64; }

/* Every region where its place is, with its points and coefficients in few dimensions, where they are most of the work. */
static void make_records(reader *R, set *S, int d, int t)
{
    S->padded = pad(S->h), S->rows = d <= FEW_FEATURES ? pad(S->s) : 0;
    S->head = whole_lines(sizeof(record) + 16 * (size_t)d + sizeof(bound) * (size_t)t);
    const int64_t ahead = S->padded + S->rows, packed = 8 * (t * ahead + (d + (S->beta ? (int64_t)t * d : 0)) * S->padded);
    S->packed = d <= FEW_FEATURES && (int64_t)S->head + packed < PACKED / S->m;
    S->stride = S->head + (S->packed ? (size_t)packed : 0);
    char *memory = room(R, S->m + 1, S->stride > 64 ? S->stride : 64);
    if (R->status) return;
    S->records = memory + (64 - (uintptr_t)memory % 64) % 64;
    for (int64_t place = 0; place < S->m; place++) {
        const int32_t j = S->ball_tree.ball[place];
        record *r = (record *)(S->records + (size_t)place * S->stride);
        r->radius = S->radii[j], r->share = S->share ? S->share[j] : 1.0, r->scale = S->scale[j];
        r->inverse = 1.0 / (S->scale[j] * S->sigma[j]);
        r->ball = j, r->kernel = (int32_t)S->kernel[j], r->degree = (int32_t)S->degree[j], r->turn = (int32_t)S->turn[j];
        memcpy(r->numbers, S->centers + (int64_t)j * d, sizeof(double) * (size_t)d);
        memcpy(r->numbers + d, S->origin + (int64_t)j * d, sizeof(double) * (size_t)d);
        bound *bounds = (bound *)(r->numbers + 2 * d);
        for (int o = 0; o < t; o++) bounds[o] = bound_region(S, j, o, t);
        if (!S->packed) continue;
        double *alpha = (double *)((char *)r + S->head), *x = alpha + t * ahead, *beta = x + d * S->padded;
        copy_coefficients(S, j, 0, (long)S->h, t, alpha, (long)ahead);
        copy_points(S, r, 0, (long)S->h, d, x, (long)S->padded);
        if (S->beta) copy_slopes(S, r, 0, (long)S->h, d, t, beta, (long)S->padded);
    }
}

/* Numbers that `find_posterior` works with. */
static size_t posterior_room(long h, long s, long r) { return sizeof(double) * (size_t)((2 * h + s + 2 * r) * LANES + h); }

/* Factors of regions with scales and noise of their variances, where they are stored: see `model.factors`. */
static void read_factors(reader *R, set *S, int k, int d, int t)
{
    st_model *M = R->model;
    const st_array *start = find_in(R, "regions%d/model0/factor_start", k), *factor = find_in(R, "regions%d/model0/factor", k);
    if (!start) return;
    S->factor_start = take_indices(R, start, 1, S->m + 1, -1, 0, INT64_MAX);
    S->factor = take_finite(R, factor, 1, -1, -1, -1);
    S->c2 = take_positive(R, find_in(R, "deviation/scale%d", k), 2, S->m, t, -1);
    S->noise = take_finite(R, find_in(R, "deviation/noise%d", k), 2, S->m, t, -1);
    S->growth = take_finite(R, find_in(R, "deviation/slope%d", k), 3, S->m, t, d);
    if (R->status || S->beta || S->factor_start[0] || S->factor_start[S->m] != factor->shape[0]) {
        refuse(R);
        return;
    }
    for (int64_t j = 0; j < S->m; j++) {
        const int64_t h = S->h, s = S->degree[j] < 0 ? 0 : S->basis.count[S->degree[j] + 1], r = s < h ? s : h;
        if (S->factor_start[j + 1] - S->factor_start[j] != h * (h + 1) / 2 + r * (2 * h + r + s) + h + 4) refuse(R);
    }
    const int64_t needed =
        (d + 1) * S->h + 2 * d + S->s + (int64_t)(posterior_room((long)S->h, (long)S->s, (long)S->s) / sizeof(double));
    M->deviation_room = needed > M->deviation_room ? needed : M->deviation_room;
}

/* What is common to the standard deviations of all regions. */
static void read_deviation(reader *R, const double *y, int64_t n)
{
    st_model *M = R->model;
    if (!find(R, "deviation/factor")) return;
    M->deviation = take_positive(R, find(R, "deviation/factor"), 1, M->t, -1, -1);
    double *spread = M->spread = room(R, M->t, sizeof *spread);
    for (int k = 0; k < M->sets && !R->status; k++)
        if (!M->set[k].factor != (&M->set[k] == M->level[M->depth - 1].set)) refuse(R);
    for (int o = 0; o < M->t && !R->status; o++) {
        double mean = 0.0;
        for (int64_t i = 0; i < n; i++) mean += y[i * M->t + o] / (double)n;
        for (int64_t i = 0; i < n; i++) spread[o] += (y[i * M->t + o] - mean) * (y[i * M->t + o] - mean) / (double)n;
    }
}

/* The gap of every region; models of one ball have the same points. One place after the other, neighbours find theirs in cache. */
static void measure_gaps(reader *R, set *S, int d)
{
    const engine *fast = pick_engine();
    double *gaps = room(R, S->m, sizeof *gaps), *at = malloc(sizeof *at * (size_t)d * PLACES);
    if (!at && !R->status) R->status = ST_NO_MEMORY;
    for (int64_t place = 0; place < S->m && !R->status; place++) {
        const int32_t j = S->ball_tree.ball[place];
        if (j % S->per_ball == 0) gaps[j] = fast->gap(S, j, d, at);
    }
    for (int64_t j = 0; j < S->m && !R->status; j++) gaps[j] = greatest(gaps[j - j % S->per_ball], LEAST_GAP * S->radii[j]);
    free(at);
    S->gaps = gaps;
}

/* These, most of a file, stay in 32 bits where they are stored so. */
static void take_members(reader *R, set *S, const st_array *members)
{
    int64_t wrong = 0;
    if (!members || members->kind != 'I') {
        S->members = take_indices(R, members, 2, -1, -1, 0, S->n);
        return;
    }
    const int32_t *x = S->short_members = take(R, members, 'I', 2, -1, -1, -1);
    for (int64_t i = 0; x && i < size_of(members); i++) wrong |= (x[i] < 0) | (x[i] >= S->n);
    if (wrong) refuse(R);
}

static void take_alpha(reader *R, set *S, const st_array *alpha, int t)
{
    float check = 0.0f;
    if (!alpha || alpha->kind != 'F') {
        S->alpha = take_finite(R, alpha, 3, S->m, S->h, t);
        return;
    }
    const float *x = S->short_alpha = take(R, alpha, 'F', 3, S->m, S->h, t);
    for (int64_t i = 0; x && i < size_of(alpha); i++) check += x[i] - x[i]; /* zero, or NaN */
    if (check != 0.0f) refuse(R);
}

/* The points in the space of the regions: stored, or made of those that were given. */
static void take_points(reader *R)
{
    st_model *M = R->model;
    const int d = M->d;
    const st_array *X = find(R, "points/X"), *given = X ? X : find(R, "points/given");
    const double *x = take_finite(R, given, 2, -1, d, -1);
    if (!x) return;
    M->points = x, M->n = given->shape[0];
    if (X) return;
    double *made = room(R, M->n * d, sizeof *made);
    for (int64_t i = 0; made && i < M->n; i++)
        for (int a = 0; a < d; a++)
            for (int b = 0; b < d; b++) made[i * d + b] += (x[i * d + a] - M->shift[a]) * M->A[a * d + b];
    M->points = made;
}

static void read_set(reader *R, set *S, int k, int d, int t, int64_t kernels)
{
    const char *model = "regions%d/model0/%s";
    const st_array *X = find_in(R, "regions%d/X", k), *members = find_in(R, model, k, "members"),
                   *lam = find_in(R, model, k, "lam");
    const st_array *turns = find_in(R, model, k, "turns");
    if (X)
        S->X = take_finite(R, X, 2, -1, d, -1), S->n = X->shape[0];
    else
        S->X = R->model->points, S->n = R->model->n;
    if (R->status) return;
    take_members(R, S, members);
    if (R->status || members->shape[0] > INT32_MAX / 2) {
        refuse(R);
        return;
    }
    S->m = members->shape[0], S->h = members->shape[1];
    S->degree = take_indices(R, find_in(R, model, k, "degree"), 1, S->m, -1, -1, MOST_DEGREE + 1);
    if (R->status) return;
    int64_t degree = -1;
    for (int64_t j = 0; j < S->m; j++) degree = S->degree[j] > degree ? S->degree[j] : degree;
    if (degree >= 0) {
        S->lam = take_finite(R, lam, 3, S->m, -1, t);
        if (R->status) return;
        S->s = lam->shape[1];
    }
    if (count_monomials(d, degree, INT32_MAX / 2) != S->s) {
        refuse(R);
        return;
    }
    S->kernel = take_indices(R, find_in(R, model, k, "kernel"), 1, S->m, -1, 0, kernels);
    S->turns = turns ? take_finite(R, turns, 3, -1, d, d) : NULL;
    if (R->status || (turns && turns->shape[0] > MOST_TURNS)) {
        refuse(R);
        return;
    }
    S->turned = room(R, turns ? turns->shape[0] : 1, sizeof *S->turned);
    S->turn = take_indices(R, find_in(R, model, k, "turn"), 1, S->m, -1, 0, turns ? turns->shape[0] : 1);
    S->origin = take_finite(R, find_in(R, model, k, "origin"), 2, S->m, d, -1);
    S->scale = take_positive(R, find_in(R, model, k, "scale"), 1, S->m, -1, -1);
    S->sigma = take_positive(R, find_in(R, model, k, "sigma"), 1, S->m, -1, -1);
    take_alpha(R, S, find_in(R, model, k, "alpha"), t);
    const st_array *beta = find_in(R, model, k, "beta");
    S->beta = beta ? take_finite(R, beta, 3, S->m, S->h, (int64_t)t * d) : NULL;
    S->centers = take_finite(R, find_in(R, "regions%d/centers", k), 2, S->m, d, -1);
    S->radii = take_wide(R, find_in(R, "regions%d/radii", k), 'f', 1, S->m, -1, -1);
    read_shares(R, S, k, t);
    for (int64_t j = 0; j < S->m && !R->status; j++)
        if (!(S->radii[j] >= 0.0)) refuse(R);
    if (!R->status && S->radii[0] < INFINITY) read_extremes(R, S, k, t);
    if (turns) make_turned(R, S, turns->shape[0], d);
    if (!R->status) make_basis(R, &S->basis, d, degree, S->s);
    if (!R->status) make_ball_tree(R, S, d);
    if (!R->status && k == 0) measure_gaps(R, S, d);
    if (!R->status) make_records(R, S, d, t);
    if (!R->status) read_factors(R, S, k, d, t);
}

static bound *make_bounds(reader *R, const double *low, const double *high, int count, double slack)
{
    bound *B = room(R, count, sizeof *B);
    for (int k = 0; k < count && B; k++) B[k] = bound_between(low[k], high[k], slack, 0.0);
    return B;
}

static void read_levels(reader *R, int64_t kernels)
{
    st_model *M = R->model;
    const st_array *which = find(R, "levels/regions");
    const int64_t *index = take_indices(R, which, 1, -1, -1, 0, MOST_LEVELS);
    if (R->status || which->shape[0] > MOST_LEVELS) {
        refuse(R);
        return;
    }
    M->depth = (int)which->shape[0];
    const double *width = take_positive(R, find(R, "levels/reach"), 1, M->depth, -1, -1);
    const double *usual = take_positive(R, find(R, "levels/usual"), 1, M->depth, -1, -1);
    for (int l = 0; l < M->depth; l++) M->sets = index[l] + 1 > M->sets ? (int)index[l] + 1 : M->sets;
    M->set = room(R, M->sets, sizeof(set)), M->level = room(R, M->depth, sizeof(level));
    if (R->status) return;
    if (index[0] != 0) {
        refuse(R);
        return;
    }
    for (int k = 0; k < M->sets && !R->status; k++) {
        set *S = &M->set[k];
        read_set(R, S, k, M->d, M->t, kernels);
        if (R->status) return;
        const int last = k == index[M->depth - 1];
        for (int64_t j = 0; j < S->m; j++) {
            const int smoothness = M->kernels[S->kernel[j]].smoothness - (S->beta != NULL);
            if ((S->radii[j] == INFINITY) != last) {
                refuse(R);
                return;
            }
            M->smoothness = smoothness < M->smoothness ? smoothness : M->smoothness;
        }
        const int64_t scratch = scratch_size(S, M->d, M->t);
        M->scratch = scratch > M->scratch ? scratch : M->scratch;
    }
    for (int l = 0; l < M->depth && !R->status; l++) {
        level *L = &M->level[l];
        L->set = &M->set[index[l]], L->width = width[l], L->usual = usual[l];
        make_reach(R, &L->reach, L->set, L->width);
        if (index[l] == 0) {
            if (l != M->own) {
                refuse(R);
                return;
            }
            M->own++;
        }
    }
    for (int l = M->depth - 1; l >= 0 && !R->status; l--) {
        const level *L = &M->level[l], *next = L + 1;
        const int same = l + 1 < M->depth && next->set == L->set && next->width >= L->width && next->together < MOST_TOGETHER;
        M->level[l].together = same ? next->together + 1 : 1;
    }
    if (R->status) return;
    M->wide.set = M->set;
    M->wide.width = greatest(M->level[M->own - 1].width, 2.0 * M->level[0].width);
    make_reach(R, &M->wide.reach, M->set, M->wide.width);
}

/* The chart, if there is one, and the limits of the places, least and greatest. */
static const double *read_chart(reader *R)
{
    st_model *M = R->model;
    chart *T = &M->chart;
    const st_array *periods = find(R, "chart/period");
    T->count = M->d, T->longitude = T->latitude = -1;
    if (!periods) return take_finite(R, find(R, "frame"), 2, 3, M->d, -1);
    T->period = take_finite(R, periods, 1, -1, -1, -1);
    if (R->status || periods->shape[0] > M->d) return refuse(R);
    T->count = (int)periods->shape[0];
    const int64_t *on_earth = take_indices(R, find(R, "chart/globe"), 1, 2, -1, -1, T->count);
    take_finite(R, find(R, "frame"), 2, 3, T->count, -1);
    T->column = room(R, T->count, sizeof(int));
    if (R->status || (on_earth[0] < 0) != (on_earth[1] < 0) || (on_earth[0] >= 0 && on_earth[0] == on_earth[1])) return refuse(R);
    T->longitude = (int)on_earth[0], T->latitude = (int)on_earth[1];
    if (T->longitude >= 0 && (T->period[T->longitude] != DEGREES || T->period[T->latitude] != 0.0)) return refuse(R);
    int64_t width = 0;
    for (int k = 0; k < T->count; k++) {
        if (T->period[k] < 0.0 || (T->period[k] > 0.0 && T->period[k] < LEAST_PERIOD)) return refuse(R);
        T->column[k] = (int)width;
        width += k == T->latitude ? 0 : k == T->longitude ? 3 : T->period[k] > 0.0 ? 2 : 1;
    }
    if (width != M->d) return refuse(R);
    return take_finite(R, find(R, "chart/limits"), 2, 2, M->d, -1);
}

static void assemble(reader *R, const char *weight, const char *kernels)
{
    st_model *M = R->model;
    const st_array *shift = find(R, "space/shift"), *y = find(R, "points/y");
    M->shift = take_finite(R, shift, 1, -1, -1, -1);
    const double *responses = take_wide(R, y, 'f', 2, -1, -1, -1);
    if (R->status || shift->shape[0] > MOST_FEATURES || y->shape[1] > INT32_MAX / 1024) {
        refuse(R);
        return;
    }
    M->d = (int)shift->shape[0], M->t = (int)y->shape[1];
    M->A = take_finite(R, find(R, "space/A"), 2, M->d, M->d, -1);
    const double *limits = read_chart(R);
    const double *extremes = take_finite(R, find(R, "extremes"), 2, 2, M->t, -1);
    const double *w0 = take_positive(R, find(R, "stitch/background_weight"), 1, 1, -1, -1);
    const double *handover = take_positive(R, find(R, "stitch/handover"), 1, 1, -1, -1);
    if (!R->status) R->status = make_weight(&M->weight, weight, M->d);
    if (R->status) return;
    M->w0 = *w0, M->handover = *handover, M->diagonal = 1, M->smoothness = M->weight.smoothness;
    for (int a = 0; a < M->d; a++)
        for (int b = 0; b < M->d; b++)
            if (a != b && M->A[(long)a * M->d + b] != 0.0) M->diagonal = 0;
    M->places = make_bounds(R, limits, limits + M->d, M->d, 0.0);
    M->answers = make_bounds(R, extremes, extremes + M->t, M->t, 1.0);
    int64_t count = R->status ? 0 : make_kernels(R, kernels);
    if (!R->status) take_points(R);
    if (!R->status) read_levels(R, count);
    if (!R->status) read_deviation(R, responses, y->shape[0]);
    M->engine = pick_engine();
}

int st_distances(long B, long h, long d, const double *Z, double *D, double *b)
{
    if (!Z || !D || !b) return ST_NULL;
    if (B < 0 || h < 1 || d < 1) return ST_COUNT;
    const engine *fast = pick_engine();
    for (long i = 0; i < B; i++) b[i] = fast->distances(h, d, Z + i * h, B * h, D + i * h * h);
    return ST_OK;
}

int st_kernel(const char *kernel, long B, long h, long d, const double *D, const double *sigma, double *K)
{
    radial phi;
    if (!kernel || !D || !sigma || !K) return ST_NULL;
    if (B < 0 || h < 1 || d < 1 || d > MOST_FEATURES) return ST_COUNT;
    if (make_kernel(&phi, kernel, strlen(kernel), (int)d) || phi.kind == NONE) return ST_CONTENT;
    double *row = malloc(sizeof *row * (size_t)h);
    if (!row) return ST_NO_MEMORY;
    const engine *fast = pick_engine();
    for (long i = 0; i < B; i++) fast->kernel(&phi, h, D + i * h * h, sigma[i], K + i * h * h, row);
    free(row);
    return ST_OK;
}

int st_posterior(const char *kernel, const long *size, const double *X, const double *Z, const double *P, const double *alpha,
                 const double *lam, const double *const *factor, double *f, double *v)
{
    radial phi;
    if (!kernel || !size || !X || !Z || !P || !alpha || !lam || !factor || !f || !v) return ST_NULL;
    const long B = size[0], c = size[1], h = size[2], d = size[3], t = size[4], s = size[5], r = size[6];
    if (B < 0 || c < 0 || h < 1 || d < 1 || d > MOST_FEATURES || t < 1 || s < 0 || r < 0) return ST_COUNT;
    if (make_kernel(&phi, kernel, strlen(kernel), (int)d)) return ST_CONTENT;
    double *room = malloc(posterior_room(h, s, r));
    if (!room) return ST_NO_MEMORY;
    const engine *fast = pick_engine();
    for (long i = 0; i < B; i++) {
        const double *a = alpha + i * h * t, *l = lam + i * s * t;
        const posterior R = {c, h, d, t, s, r, B * h, B * c, X + i * h, Z + i * c, P + i * c * s, a, l, factor[i]};
        fast->posterior(&phi, &R, room, f + i * c * t, v + i * c);
    }
    free(room);
    return ST_OK;
}

/* Finish a model of which everything was read, or give up all of it. */
static int deliver(st_model *M, int status, st_model **model)
{
    if (status) {
        st_close(M);
        return status;
    }
    M->magic = MAGIC;
    *model = M;
    return ST_OK;
}

int st_wrap(const st_array *arrays, long count, const char *weight, const char *kernels, st_model **model)
{
    if (!model) return ST_NULL;
    *model = NULL;
    if (!arrays || !weight || !kernels) return ST_NULL;
    if (count < 1 || count > MOST_ARRAYS) return ST_CONTENT;
    st_model *M = calloc(1, sizeof *M);
    entry *entries = calloc((size_t)count, sizeof *entries);
    reader R = {M, entries, count, M && entries ? ST_OK : ST_NO_MEMORY};
    for (long i = 0; i < count && !R.status; i++) {
        entries[i].array = arrays[i], entries[i].name = arrays[i].name;
        if (!arrays[i].name)
            R.status = ST_NULL;
        else
            entries[i].length = strlen(arrays[i].name);
    }
    if (!R.status) assemble(&R, weight, kernels);
    free(entries);
    return deliver(M, R.status, model);
}

void st_close(st_model *M)
{
    if (!M) return;
    M->magic = 0;
    for (long i = 0; i < M->owned_count; i++) free(M->owned[i]);
    free(M->owned);
#ifdef MAPPED_FILES
    if (M->map) munmap(M->map, M->map_size);
#else
    free(M->map);
#endif
    free(M);
}

/* CRC-32, that of zlib and PNG, sixteen bytes at a time. */
typedef struct {
    uint32_t table[16][256];
} crc;

static void make_crc(crc *C)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t value = byte;
        for (int bit = 0; bit < 8; bit++) value = value >> 1 ^ (value & 1u ? 0xedb88320u : 0u);
        C->table[0][byte] = value;
    }
    for (int k = 1; k < 16; k++)
        for (int byte = 0; byte < 256; byte++)
            C->table[k][byte] = C->table[k - 1][byte] >> 8 ^ C->table[0][C->table[k - 1][byte] & 255u];
}

static uint32_t add_crc(const crc *C, uint32_t value, const unsigned char *data, size_t length)
{
    value = ~value;
    for (; length >= 16; length -= 16, data += 16) {
        uint32_t word[4];
        memcpy(word, data, 16);
        word[0] ^= value;
        value = 0;
        for (int k = 0; k < 4; k++)
            value ^= C->table[15 - 4 * k][word[k] & 255u] ^ C->table[14 - 4 * k][word[k] >> 8 & 255u] ^
                     C->table[13 - 4 * k][word[k] >> 16 & 255u] ^ C->table[12 - 4 * k][word[k] >> 24];
    }
    for (; length; length--, data++) value = value >> 8 ^ C->table[0][(value ^ *data) & 255u];
    return ~value;
}

/* The text of JSON, as far as safetensors' headers go: where a value is not what is expected, `bad` is set and nothing moves on. */
typedef struct {
    const char *at, *end;
    int bad;
} text;

typedef struct {
    const char *start;
    size_t length;
} word;

static char peek(text *T)
{
    while (T->at < T->end && (*T->at == ' ' || *T->at == '\n' || *T->at == '\t' || *T->at == '\r')) T->at++;
    return T->at < T->end && !T->bad ? *T->at : '\0';
}

static int accept(text *T, char c)
{
    if (peek(T) != c) return 0;
    T->at++;
    return 1;
}

static void expect(text *T, char c)
{
    if (!accept(T, c)) T->bad = 1;
}

/* A string as it is written, escapes and all. */
static word read_word(text *T)
{
    word found = {NULL, 0};
    expect(T, '"');
    found.start = T->at;
    while (!T->bad && T->at < T->end && *T->at != '"') T->at += *T->at == '\\' && T->end - T->at > 1 ? 2 : 1;
    found.length = (size_t)(T->at - found.start);
    expect(T, '"');
    return found;
}

static int64_t read_number(text *T)
{
    int64_t value = 0;
    int digits = 0;
    peek(T);
    for (; T->at < T->end && *T->at >= '0' && *T->at <= '9'; T->at++, digits++) {
        if (value > INT64_MAX / 16)
            T->bad = 1;
        else
            value = 10 * value + (*T->at - '0');
    }
    if (!digits) T->bad = 1;
    return value;
}

static int same(word w, const char *name) { return w.length == strlen(name) && !memcmp(w.start, name, w.length); }

typedef struct {
    word format, version, crc32, weight, kernels, link;
    int old; /* named as headers were up to version 2 */
} header;

static void read_metadata(text *T, header *H)
{
    expect(T, '{');
    if (accept(T, '}')) return;
    do {
        word name = read_word(T), value;
        expect(T, ':');
        value = read_word(T);
        if (same(name, "format")) H->format = value;
        if (same(name, "version")) H->version = value;
        if (same(name, "crc32")) H->crc32 = value;
        if (same(name, "weight")) H->weight = value;
        if (same(name, "kernels")) H->kernels = value;
        if (same(name, "link")) H->link = value;
        if (same(name, "stitchwork") || same(name, "stitchwork-shard")) H->old = 1;
    } while (accept(T, ','));
    expect(T, '}');
}

/* One array: its type, its shape, and where its bytes are. */
static void read_array(text *T, st_array *array, const unsigned char *data, uint64_t size)
{
    uint64_t from = 0, to = 0, count = 1;
    int placed = 0;
    expect(T, '{');
    do {
        word name = read_word(T);
        expect(T, ':');
        if (same(name, "dtype")) {
            word type = read_word(T);
            array->kind = same(type, "F64")   ? 'f'
                          : same(type, "I64") ? 'i'
                          : same(type, "F32") ? 'F'
                          : same(type, "I32") ? 'I'
                                              : '?';
        } else if (same(name, "shape")) {
            expect(T, '[');
            if (!accept(T, ']')) {
                do {
                    int64_t length = read_number(T);
                    if (array->dimensions < 3) array->shape[array->dimensions] = length;
                    array->dimensions++;
                    if (length > 0 && count > UINT64_MAX / 16 / (uint64_t)length)
                        T->bad = 1;
                    else
                        count *= (uint64_t)length;
                } while (accept(T, ',') && !T->bad);
                expect(T, ']');
            }
        } else if (same(name, "data_offsets")) {
            expect(T, '[');
            from = (uint64_t)read_number(T);
            expect(T, ',');
            to = (uint64_t)read_number(T);
            expect(T, ']');
            placed = 1;
        } else {
            T->bad = 1;
        }
    } while (accept(T, ',') && !T->bad);
    expect(T, '}');
    if (T->bad || !placed || from > to || to > size) {
        T->bad = 1;
    } else if (array->kind != '?') {
        const uint64_t width = array->kind == 'f' || array->kind == 'i' ? 8 : 4;
        if (to - from != width * count || from % width)
            T->bad = 1;
        else
            array->data = data + from;
    }
}

static int copy_word(char *to, size_t size, word from)
{
    if (!from.start || from.length >= size) return 0;
    memcpy(to, from.start, from.length);
    to[from.length] = '\0';
    return 1;
}

static int check_version(const header *H)
{
    char version[16];
    if (!H->format.start || !same(H->format, "stitchwork")) return H->old ? ST_OLD_FORMAT : ST_NOT_A_MODEL;
    if (!copy_word(version, sizeof version, H->version)) return ST_NOT_A_MODEL;
    long number = strtol(version, NULL, 10);
    return number < ST_OLDEST_FORMAT ? ST_OLD_FORMAT : number > ST_FORMAT ? ST_NEW_FORMAT : ST_OK;
}

/* CRC-32 of the file with its own eight digits read as zeros. */
static int check_crc(const unsigned char *file, size_t size, word digits)
{
    char wanted[9];
    if (!digits.start || digits.length != 8) return ST_NOT_A_MODEL;
    crc *C = malloc(sizeof *C);
    if (!C) return ST_NO_MEMORY;
    const size_t place = (size_t)((const unsigned char *)digits.start - file);
    make_crc(C);
    uint32_t value = add_crc(C, 0, file, place);
    value = add_crc(C, value, (const unsigned char *)"00000000", 8);
    value = add_crc(C, value, file + place + 8, size - place - 8);
    free(C);
    snprintf(wanted, sizeof wanted, "%08x", (unsigned)value);
    return memcmp(wanted, digits.start, 8) ? ST_DAMAGED : ST_OK;
}

static int read_file(st_model *M, const unsigned char *file, size_t size)
{
    uint64_t length = 0;
    char weight[64], kernels[512];
    header H;
    memset(&H, 0, sizeof H);
    if (size < 16) return ST_NOT_A_MODEL;
    memcpy(&length, file, 8);
    if (length > size - 8 || length % 8) return ST_NOT_A_MODEL;
    text T = {(const char *)file + 8, (const char *)file + 8 + length, 0};
    entry *entries = calloc(MOST_ARRAYS, sizeof *entries);
    if (!entries) return ST_NO_MEMORY;
    reader R = {M, entries, 0, ST_OK};
    expect(&T, '{');
    do {
        word name = read_word(&T);
        expect(&T, ':');
        if (T.bad || R.count == MOST_ARRAYS)
            T.bad = 1;
        else if (same(name, "__metadata__"))
            read_metadata(&T, &H);
        else {
            entry *E = &entries[R.count++];
            E->name = name.start, E->length = name.length;
            read_array(&T, &E->array, file + 8 + length, size - 8 - (size_t)length);
        }
    } while (!T.bad && accept(&T, ','));
    expect(&T, '}');
    if (T.bad) R.status = ST_NOT_A_MODEL;
    if (!R.status) R.status = check_version(&H);
    if (!R.status) R.status = check_crc(file, size, H.crc32);
    if (!R.status && (!copy_word(weight, sizeof weight, H.weight) || !copy_word(kernels, sizeof kernels, H.kernels))) refuse(&R);
    if (!R.status && H.link.start && !(M->log = same(H.link, "log"))) refuse(&R);
    if (!R.status) assemble(&R, weight, kernels);
    free(entries);
    return R.status;
}

/* The bytes of a file: mapped, so that processes share them, or read. */
static int map_file(st_model *M, const char *path)
{
#ifdef __wasm__
    (void)M, (void)path;
    return ST_NO_FILE; /* models are opened in memory there */
#elif defined(MAPPED_FILES)
    struct stat about;
    int file = open(path, O_RDONLY);
    if (file < 0) return ST_NO_FILE;
    if (fstat(file, &about) || !S_ISREG(about.st_mode)) {
        close(file);
        return ST_NO_FILE;
    }
    if (about.st_size < 16) {
        close(file);
        return ST_NOT_A_MODEL;
    }
    M->map_size = (size_t)about.st_size;
    M->map = mmap(NULL, M->map_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (M->map == MAP_FAILED) {
        M->map = NULL;
        return ST_NO_MEMORY;
    }
    return ST_OK;
#else
    FILE *file = fopen(path, "rb");
    long long size;
    if (!file) return ST_NO_FILE;
    _fseeki64(file, 0, SEEK_END);
    size = _ftelli64(file);
    _fseeki64(file, 0, SEEK_SET);
    M->map_size = size > 0 ? (size_t)size : 0;
    M->map = malloc(M->map_size ? M->map_size : 1);
    int whole = M->map && fread(M->map, 1, M->map_size, file) == M->map_size;
    fclose(file);
    return !M->map ? ST_NO_MEMORY : whole ? ST_OK : ST_NO_FILE;
#endif
}

int st_open(const char *path, st_model **model)
{
    const uint16_t one = 1;
    if (!model) return ST_NULL;
    *model = NULL;
    if (!path) return ST_NULL;
    if (*(const unsigned char *)&one != 1) return ST_PLATFORM;
    st_model *M = calloc(1, sizeof *M);
    if (!M) return ST_NO_MEMORY;
    int status = map_file(M, path);
    if (!status) status = read_file(M, M->map, M->map_size);
    return deliver(M, status, model);
}

int st_open_memory(const void *data, size_t size, st_model **model)
{
    const uint16_t one = 1;
    if (!model) return ST_NULL;
    *model = NULL;
    if (!data) return ST_NULL;
    if (*(const unsigned char *)&one != 1) return ST_PLATFORM;
    if ((uintptr_t)data % 8) return ST_ALIGNMENT;
    st_model *M = calloc(1, sizeof *M);
    if (!M) return ST_NO_MEMORY;
    return deliver(M, read_file(M, data, size), model);
}

/* ---- contributions -----------------------------------------------------------------------------------------------------------
 * The stitch of one query taken apart: see `contributions` of `model.stitch`, and `model.explain`. */

typedef struct {
    long count, capacity;
    st_part *part;
    double *share, *value; /* [count * t] */
} parts;

static int make_room(parts *P, long more, int t)
{
    if (P->count + more <= P->capacity) return ST_OK;
    const long capacity = 2 * P->capacity + more;
    const size_t numbers = sizeof(double) * (size_t)capacity * (size_t)t;
    st_part *part = realloc(P->part, sizeof *part * (size_t)capacity);
    if (part) P->part = part;
    double *share = realloc(P->share, numbers);
    if (share) P->share = share;
    double *value = realloc(P->value, numbers);
    if (value) P->value = value;
    if (!part || !share || !value) return ST_NO_MEMORY;
    P->capacity = capacity;
    return ST_OK;
}

/* The regions of a level that contain q, of which the levels before leave a share `left`; what they leave is left afterwards.
 * `numbers` has room for 1 + t sums and for what `evaluate` works with, whose last t are what the region says, times its stress. */
static int take_apart(const st_model *M, int depth, const double *q, double *left, parts *P, hits *H, double *numbers)
{
    const level *L = &M->level[depth];
    const set *S = L->set;
    const int t = M->t;
    const int32_t query = 0, levels = 1;
    const long first = P->count;
    double *sums = numbers, *scratch = sums + 1 + t, *said = scratch + M->scratch, W = 0.0, w_b = 0.0;
    H->count = 0;
    M->engine->find(&S->ball_tree, &L->reach, q, 0, H);
    if (H->failed || make_room(P, H->count, t)) return ST_NO_MEMORY;
    for (long i = 0; i < H->count; i++, P->count++) {
        const record *r = record_at(S, H->place[i]);
        const double *stress = S->stress ? S->stress + (int64_t)r->ball * t : NULL;
        const job J = {M, L, r, &query, 1, q, &levels, 0, sums, scratch};
        const st_part part = {depth, (int32_t)(r->ball / S->per_ball), (int32_t)(r->ball % S->per_ball)};
        memset(sums, 0, sizeof *sums * (size_t)(1 + t));
        M->engine->evaluate(&J);
        W += sums[0];
        P->part[P->count] = part;
        for (int o = 0; o < t; o++) {
            const double own = stress ? stress[o] : 1.0;
            P->share[P->count * t + o] = sums[0] * own;
            P->value[P->count * t + o] = own > 0.0 ? said[o] / own : 0.0;
        }
    }
    if (depth + 1 < M->depth && W < M->handover * L->usual) weigh_background(M, L->usual, &W, 0, &w_b);
    for (long i = first * t; i < P->count * t; i++) P->share[i] *= *left / (W + w_b);
    *left *= w_b / (W + w_b);
    return ST_OK;
}

/* All parts of the answer at x. `q` becomes its place in the space of the regions; there is room for 2 d + 1 + t numbers and those
 * that `evaluate` works with. */
static int find_parts(const st_model *M, const double *x, double *q, parts *P, hits *H)
{
    const int d = M->d;
    double left = 1.0, slope, bend, *inside = q + d;
    const double *e = place(&M->chart, x, q);
    int status = ST_OK;
    for (int k = 0; k < d; k++) inside[k] = saturate(&M->places[k], e[k], &slope, &bend);
    map_point(M, inside, q);
    P->count = 0;
    for (int l = 0; l < M->depth && left > 0.0 && !status; l++) status = take_apart(M, l, q, &left, P, H, inside + d);
    return status;
}

/* What bounds of answers add to every value, so that the mean is the answer; then y from log y. */
static void hold_parts(const st_model *M, parts *P)
{
    const int t = M->t;
    for (int o = 0; o < t; o++) {
        double answer = 0.0, slope, bend;
        for (long i = 0; i < P->count; i++) answer += P->share[i * t + o] * P->value[i * t + o];
        const double held = saturate(&M->answers[o], answer, &slope, &bend) - answer;
        for (long i = 0; i < P->count; i++) {
            double *value = &P->value[i * t + o];
            *value = M->log ? exp(*value + held) : *value + held;
        }
    }
}

/* Up to `most` parts, the largest mean share first; those that were copied have no share left. */
static void copy_parts(parts *P, int t, long most, st_part *part, double *share, double *value)
{
    for (long k = 0; k < most && k < P->count; k++) {
        long best = 0;
        double largest = -1.0;
        for (long i = 0; i < P->count; i++) {
            double sum = 0.0;
            for (int o = 0; o < t; o++) sum += P->share[i * t + o];
            if (P->part[i].level >= 0 && sum > largest) largest = sum, best = i;
        }
        part[k] = P->part[best];
        memcpy(share + k * t, P->share + best * t, sizeof *share * (size_t)t);
        memcpy(value + k * t, P->value + best * t, sizeof *value * (size_t)t);
        P->part[best].level = -1;
    }
}

int st_contributions(const st_model *M, const double *x, long most, st_part *part, double *share, double *value, long *count)
{
    int32_t places[FEW_HITS], query[FEW_HITS];
    hits H = {places, query, 0, FEW_HITS, 0, 0};
    parts P = {0, 0, NULL, NULL, NULL};
    int status = check_question(M, 1, x, x, 0);
    if (!status && (!count || (most > 0 && (!part || !share || !value)))) status = ST_NULL;
    if (!status && most < 0) status = ST_COUNT;
    if (status) return status;
    const int t = M->t;
    double *q = malloc(sizeof *q * (size_t)(2 * M->d + 1 + t + scratch_for(M, 1, 0)));
    if (!q) return ST_NO_MEMORY;
    status = find_parts(M, x, q, &P, &H);
    if (!status) {
        hold_parts(M, &P);
        copy_parts(&P, t, most, part, share, value);
        *count = P.count;
    }
    if (H.owned) free(H.place), free(H.query);
    free(q), free(P.part), free(P.share), free(P.value);
    return status;
}

/* The variance of one region at q, a place in the space of the regions, from its factor; `room` is for (d + 1) h + s + d numbers
 * and those of `find_posterior`. */
static double part_variance(const st_model *M, const set *S, int64_t ball, const double *q, const double *factor, double *room)
{
    const int d = M->d;
    const long h = (long)S->h, s = S->degree[ball] < 0 ? 0 : S->basis.count[S->degree[ball] + 1], r = s < h ? s : h;
    const double *T = S->turned[S->turn[ball]] ? S->turns + S->turn[ball] * d * d : NULL, *X = T ? S->turned[S->turn[ball]] : S->X;
    const double inverse = 1.0 / (S->scale[ball] * S->sigma[ball]);
    double *x = room, *at = x + d * h, *z = at + d, *P = z + d, *rest = P + s, v;
    for (int k = 0; k < d; k++) at[k] = (q[k] - S->origin[ball * d + k]) / S->scale[ball];
    turn_point(T, at, d, z);
    turn_point(T, q, d, at);
    for (long e = 0; e < s; e++) P[e] = e ? P[S->basis.parent[e]] * z[S->basis.variable[e]] : 1.0;
    for (long i = 0; i < h; i++) {
        const double *point = X + member_at(S, ball * h + i) * d;
        for (int k = 0; k < d; k++) x[k * h + i] = (point[k] - at[k]) * inverse;
    }
    for (int k = 0; k < d; k++) at[k] = 0.0; /* points are seen from the query, where the region's own coordinates begin */
    const posterior R = {1, h, d, 0, s, r, h, 1, x, at, P, NULL, NULL, factor};
    M->engine->posterior(&M->kernels[S->kernel[ball]], &R, rest, NULL, &v);
    return v;
}

int st_part_variances(const st_model *M, const double *x, long count, const st_part *part, const double *const *factor, double *v)
{
    int status = check_question(M, 1, x, x, 0);
    if (!status && count > 0 && (!part || !factor || !v)) status = ST_NULL;
    if (status) return status;
    const int d = M->d;
    size_t size = 0;
    double slope, bend;
    for (long i = 0; i < count && !status; i++) {
        const int known = part[i].level >= 0 && part[i].level < M->depth;
        const set *S = known ? M->level[part[i].level].set : NULL;
        const int64_t ball = known ? part[i].region * S->per_ball + part[i].model : 0;
        if (!known || part[i].region < 0 || part[i].model < 0 || ball >= S->m || S->beta || !factor[i]) {
            status = ST_CONTENT;
            break;
        }
        const long h = (long)S->h, s = (long)S->s;
        const size_t own = sizeof(double) * (size_t)(d * h + 2 * d + s) + posterior_room(h, s, s < h ? s : h);
        if (own > size) size = own;
    }
    double *q = status ? NULL : malloc(sizeof *q * (size_t)(2 * d) + size), *inside = q ? q + d : NULL;
    if (!status && !q) status = ST_NO_MEMORY;
    if (status) return status;
    const double *e = place(&M->chart, x, q);
    for (int k = 0; k < d; k++) inside[k] = saturate(&M->places[k], e[k], &slope, &bend);
    map_point(M, inside, q);
    for (long i = 0; i < count; i++) {
        const set *S = M->level[part[i].level].set;
        v[i] = part_variance(M, S, part[i].region * S->per_ball + part[i].model, q, factor[i], inside + d);
    }
    free(q);
    return ST_OK;
}

/* Variance and noise of what one part says at q of output o, from the variance v of its region in its own unit: at most what bounds
 * its answers allow, and the noise. In large regions the unit grows along a slope. */
static double scale_variance(const st_model *M, const set *S, int64_t ball, const double *q, int o, double v, double *noise)
{
    const int d = M->d;
    const double *growth = S->growth + (ball * M->t + o) * d, *c = S->centers + ball * d;
    const double far = sqrt(squared_distance(q, c, d)), unit = greatest(far, S->radii[ball]);
    const double margin = bound_region(S, ball, o, M->t).margin / (MARGIN * greatest(M->deviation[o], 1.0));
    double along = 0.0;
    for (int k = 0; k < d && unit > 0.0; k++) along += (q[k] - c[k]) / unit * growth[k];
    const double most = greatest(margin * margin, S->noise[ball * M->t + o]), grown = exp(along);
    *noise = grown * S->noise[ball * M->t + o];
    return least(grown * S->c2[ball * M->t + o] * v, most);
}

/* The share of the variance of the responses that nothing says of features x, since they saturate: see `model.bounds`. */
static double hidden_share(const st_model *M, const double *x, double *room)
{
    const double *e = place(&M->chart, x, room);
    double u = 0.0, slope, bend;
    for (int k = 0; k < M->d; k++)
        if (M->places[k].margin > 0.0) {
            const double beyond = fabs(e[k] - saturate(&M->places[k], e[k], &slope, &bend)) / M->places[k].margin;
            u += least(beyond, FAR) * least(beyond, FAR);
        }
    return u / (1.0 + u);
}

/* Standard deviations of the answer that is made of these parts at q, from the mixture of all of them: see `model.row`; with this
 * hidden share of the variance of the responses. */
static void find_deviation(const st_model *M, const parts *P, const double *q, double hidden, int of_function, double *room,
                           double *s)
{
    const int t = M->t;
    double slope, bend, *mean = room, *variance = mean + t, *noise = variance + t, *rest = noise + t;
    memset(room, 0, sizeof *room * (size_t)(3 * t));
    for (long i = 0; i < P->count * t; i++) mean[i % t] += P->share[i] * P->value[i];
    for (long i = 0; i < P->count; i++) {
        const st_part part = P->part[i];
        const set *S = M->level[part.level].set;
        const int64_t ball = part.region * S->per_ball + part.model;
        const double v = S->factor ? greatest(part_variance(M, S, ball, q, S->factor + S->factor_start[ball], rest), 0.0) : 0.0;
        for (int o = 0; o < t; o++) {
            double own_noise = 0.0, own = S->factor ? scale_variance(M, S, ball, q, o, v, &own_noise) : M->spread[o];
            const double off = P->value[i * t + o] - mean[o];
            variance[o] += P->share[i * t + o] * (own + off * off);
            noise[o] += P->share[i * t + o] * own_noise;
        }
    }
    for (int o = 0; o < t; o++) {
        const double unit = M->deviation[o] * M->deviation[o], of_noise = unit * noise[o];
        const double of_value = least(unit * variance[o] + hidden * M->spread[o], greatest(MOST_VARIANCE * M->spread[o], of_noise));
        const double total = of_function ? of_value : of_value + of_noise;
        s[o] = sqrt(total);
        if (M->log) s[o] = exp(saturate(&M->answers[o], mean[o], &slope, &bend) + 0.5 * total) * sqrt(expm1(total));
        s[o] = greatest(s[o], DBL_MIN);
    }
}

int st_deviations(const st_model *M, long n, const double *X, int of_function, double *S)
{
    int32_t places[FEW_HITS], query[FEW_HITS];
    hits H = {places, query, 0, FEW_HITS, 0, 0};
    parts P = {0, 0, NULL, NULL, NULL};
    int status = check_question(M, n, X, S, 0);
    if (!status && !M->deviation) status = ST_NO_FACTORS;
    if (status || n == 0) return status;
    const int64_t asked = 2 * M->d + 1 + M->t + scratch_for(M, 1, 0), needed = 2 * M->d + 3 * M->t + M->deviation_room;
    double *q = malloc(sizeof *q * (size_t)(asked > needed ? asked : needed));
    if (!q) return ST_NO_MEMORY;
    for (long i = 0; i < n && !status; i++) {
        const double hidden = hidden_share(M, X + i * M->chart.count, q);
        status = find_parts(M, X + i * M->chart.count, q, &P, &H);
        if (!status) find_deviation(M, &P, q, hidden, of_function, q + 2 * M->d, S + i * M->t);
    }
    if (H.owned) free(H.place), free(H.query);
    free(q), free(P.part), free(P.share), free(P.value);
    return status;
}

int st_deviation(const st_model *M, const double *x, double *s) { return st_deviations(M, 1, x, 0, s); }
