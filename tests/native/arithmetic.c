/* The largest errors of the library's own exp and log, in units in the last place, against long double; and misuse. */
#include "stitchwork.c"

static double ulps(double found, long double truth)
{
    int exponent;
    frexpl(truth, &exponent);
    return (double)fabsl(((long double)found - truth) / ldexpl(1.0L, exponent - 53));
}

int main(void)
{
    double worst_exp = 0.0, worst_log = 0.0;
    for (long i = 0; i <= 2000000; i++) {
        double x = i < 1000000 ? -(double)i * 7.07e-4 : -exp(-(double)(i - 1000000) * 4e-5);
        worst_exp = greatest(worst_exp, ulps(exp_negative(x), expl(x)));
        x = exp(((double)i - 1000000.0) * 3.6e-5);
        if (fabs(x - 1.0) > 1e-3)
            worst_log = greatest(worst_log, ulps(log_positive(x), logl(x)));
        else
            worst_log = greatest(worst_log, (double)fabsl(((long double)log_positive(x) - logl(x)) / (x - 1.0)) / DBL_EPSILON);
    }
    printf("%g %g\n", worst_exp, worst_log);
    st_model zeros, *model = &zeros;
    double x[1] = {0.0}, f[1] = {7.0};
    memset(&zeros, 0, sizeof zeros);
    int told = st_value(NULL, x, f) == ST_NULL && st_value(&zeros, x, f) == ST_CLOSED && st_features(NULL) == -1 &&
               st_features(&zeros) == -1 && st_expect(NULL, 1, 1) == ST_NULL && st_gradient(&zeros, x, f, NULL) == ST_NULL &&
               st_open(NULL, &model) == ST_NULL && st_open("x", NULL) == ST_NULL &&
               st_batch(&zeros, -1, x, f, NULL, NULL) == ST_CLOSED && st_wrap(NULL, 1, "", "", &model) == ST_NULL &&
               st_open("/", &model) == ST_NO_FILE && !model && f[0] == 7.0;
    st_close(NULL);
    return !told;
}
