/* stitchwork: a fitted model as a table, for C, C++ and Fortran.
 *
 * `st_open` reads the file that `StitchedRegressor.save` wrote; the handle is read-only afterwards, so any number of threads may
 * use it at the same time. Results go to the caller's buffers, and every function returns a status: 0 is success, `st_message` says
 * what any other means. A call that does not succeed writes nothing. There are no global variables, and nothing but libm is needed:
 *
 *     cc -O3 -fno-math-errno -fno-trapping-math program.c stitchwork.c -lm
 *
 * d is the number of features, t that of outputs; matrices are stored row by row. Periodic features and longitudes may have any
 * value. Derivatives are with respect to the features, longitude and latitude in degrees. A model of log y returns y.
 */
#ifndef STITCHWORK_H
#define STITCHWORK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32) && defined(ST_SHARED)
#define ST_API __declspec(dllexport)
#elif defined(__GNUC__)
#define ST_API __attribute__((visibility("default")))
#else
#define ST_API
#endif

#define ST_FORMAT 10       /* the newest version of the files that are read */
#define ST_OLDEST_FORMAT 6 /* and the oldest */

enum {
    ST_OK = 0,
    ST_NULL = 1,        /* an argument is NULL that must not be */
    ST_CLOSED = 2,      /* the handle is not that of an open model */
    ST_NOT_FINITE = 3,  /* a query is NaN or infinite */
    ST_NOT_SMOOTH = 4,  /* the model has no derivatives of that order */
    ST_COUNT = 5,       /* a negative number of queries */
    ST_OTHER_MODEL = 6, /* another number of features or outputs than expected */
    ST_NO_MEMORY = 7,
    ST_NO_FILE = 8,     /* there is no such file, or it cannot be read */
    ST_NOT_A_MODEL = 9, /* some other file, or a truncated one */
    ST_OLD_FORMAT = 10,
    ST_NEW_FORMAT = 11,
    ST_DAMAGED = 12,   /* the checksum differs */
    ST_CONTENT = 13,   /* a size, index or number in the file makes no sense */
    ST_PLATFORM = 14,  /* a machine whose numbers are not stored as the file's are */
    ST_LATITUDE = 15,  /* a latitude beyond a pole */
    ST_ALIGNMENT = 16, /* the bytes of a file in memory begin at an address that is not a multiple of eight */
    ST_NO_FACTORS = 17 /* standard deviations, from a file that was saved without factors of regions */
};

typedef struct st_model st_model;

ST_API int st_open(const char *path, st_model **model);
ST_API int st_open_memory(const void *data, size_t size, st_model **model); /* the bytes of such a file, which must stay valid */
ST_API void st_close(st_model *model);

ST_API int st_features(const st_model *model);   /* d, or -1 if this is no open model */
ST_API int st_outputs(const st_model *model);    /* t, or -1 */
ST_API int st_smoothness(const st_model *model); /* how many continuous derivatives the function has: 99 for any, -1 for none */
ST_API int st_expect(const st_model *model, int features, int outputs); /* ST_OTHER_MODEL if it has others */

ST_API int st_value(const st_model *model, const double *x, double *f);                         /* x[d], f[t] */
ST_API int st_gradient(const st_model *model, const double *x, double *f, double *g);           /* g[t*d] */
ST_API int st_hessian(const st_model *model, const double *x, double *f, double *g, double *H); /* H[t*d*d] */
ST_API int st_coverage(const st_model *model, const double *x, double *c);                      /* c[1], see `coverage` */

/* n queries X[n*d] at once, much faster than one by one: F[n*t], G[n*t*d], H[n*t*d*d]; G and H may be NULL. To use several threads,
 * let each ask for a part of the rows. */
ST_API int st_batch(const st_model *model, long n, const double *X, double *F, double *G, double *H);
ST_API int st_coverages(const st_model *model, long n, const double *X, double *C); /* C[n] */

/* Standard deviations of a new observation s[t], or with `of_function` of the function without noise, at n queries: S[n*t]. They
 * are those of `predict(X, return_std=True)`, from a file that was written by `save(path, factors=True)`. */
ST_API int st_deviation(const st_model *model, const double *x, double *s);
ST_API int st_deviations(const st_model *model, long n, const double *X, int of_function, double *S);

/* What makes up the answer at x[d]: which regions, with their shares and what they say of every output, share[k*t] and value[k*t],
 * the largest share first. At most `most` of them are given; `count` is how many there are. The shares of all sum to one. The
 * prediction is the mean of the values, weighted by their shares, or for a model of log y their weighted geometric mean. */
typedef struct st_part {
    int32_t level;  /* 0: the regions; more: levels of the background behind them */
    int32_t region; /* in its level, as Python counts them */
    int32_t model;  /* which of the models that the region averages */
} st_part;

ST_API int st_contributions(const st_model *model, const double *x, long most, st_part *part, double *share, double *value,
                            long *count);

ST_API const char *st_message(int status);

/* A model whose arrays are in memory already, by the names that `save` gives them. They belong to the caller, and must
 * stay valid while the model is open. */
typedef struct st_array {
    const char *name;
    const void *data;
    int64_t shape[3];
    int32_t dimensions; /* 1 to 3 */
    char kind;          /* 'f': double, 'i': int64_t, 'F': float, 'I': int32_t */
} st_array;

ST_API int st_wrap(const st_array *arrays, long count, const char *weight, const char *kernels, st_model **model);

/* What Python's fit uses: squared distances D (B, h, h) of the points Z (d, B, h) of B regions with their means b (B) over pairs,
 * not squared; and matrices K (B, h, h) of a kernel in d dimensions at D / σ², with σ (B). */
ST_API int st_distances(long B, long h, long d, const double *Z, double *D, double *b);
ST_API int st_kernel(const char *kernel, long B, long h, long d, const double *D, const double *sigma, double *K);

/* And what its standard deviations use: values f (B, c, t) and variances v (B, c) of B regions at c queries each. The sizes are B,
 * c, h, d, t, s, r; points X (d, B, h) and queries Z (d, B, c) in units of the kernel's length scale, monomials P (B, c, s) of the
 * queries, coefficients alpha (B, h, t) and lam (B, s, t); factor[B] are those of `local.factors`. And variances v (count) of
 * the parts of one prediction, from the factors of their regions. */
ST_API int st_posterior(const char *kernel, const long *size, const double *X, const double *Z, const double *P,
                        const double *alpha, const double *lam, const double *const *factor, double *f, double *v);
ST_API int st_part_variances(const st_model *model, const double *x, long count, const st_part *part, const double *const *factor,
                             double *v);

#ifdef __cplusplus
}
#endif
#endif
