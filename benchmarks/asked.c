/* What a query costs from C: asked model.stitch queries.bin count, with queries (count, d) as doubles, in random order.
 * Prints seconds from opening to the first answer, then µs a query: value and gradient one by one, and in batches with none, the
 * gradient, and the Hessian of them (up to three features; zero beyond). CPU time of this process, the least of three runs. */
#define _POSIX_C_SOURCE 199309L
#include "stitchwork.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char **argv)
{
    const double start = now();
    st_model *model = NULL;
    int status = argc == 4 ? st_open(argv[1], &model) : ST_NULL;
    if (status) return fprintf(stderr, "%s\n", st_message(status)), 1;
    const long n = atol(argv[3]), d = st_features(model), t = st_outputs(model);
    double *X = malloc(sizeof *X * (size_t)(n * d)), *F = malloc(sizeof *F * (size_t)(n * t));
    double *G = malloc(sizeof *G * (size_t)(n * t * d)), *H = d <= 3 ? malloc(sizeof *H * (size_t)(n * t * d * d)) : NULL;
    FILE *file = fopen(argv[2], "rb");
    if (!X || !F || !G || !file || fread(X, sizeof *X * (size_t)d, (size_t)n, file) != (size_t)n) return 1;
    fclose(file);
    st_value(model, X, F);
    const double opened = now() - start;
    double best[4] = {1e9, 1e9, 1e9, 1e9};
    for (int run = 0; run < 3; run++) {
        double at[5];
        at[0] = now();
        for (long i = 0; i < n; i++) status |= st_gradient(model, X + i * d, F + i * t, G + i * t * d);
        at[1] = now();
        status |= st_batch(model, n, X, F, NULL, NULL);
        at[2] = now();
        status |= st_batch(model, n, X, F, G, NULL);
        at[3] = now();
        if (H) status |= st_batch(model, n, X, F, G, H);
        at[4] = now();
        for (int k = 0; k < 4; k++)
            if (at[k + 1] - at[k] < best[k]) best[k] = at[k + 1] - at[k];
    }
    printf("%g", opened);
    for (int k = 0; k < 4; k++) printf(" %g", 1e6 * best[k] / (double)n);
    printf("\n");
    free(X), free(F), free(G), free(H);
    st_close(model);
    return status != 0;
}
