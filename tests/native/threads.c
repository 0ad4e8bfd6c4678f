/* Threads that ask one model at once, and open and close others: threads FILE THREADS ROUNDS
 *
 * Compiled with -fsanitize=thread by `tests/compiled.py`. Every answer must be, bit for bit, that of one thread alone; the status
 * is 1 if one is not, and the sanitizer's own if two threads touch the same memory. */

#include "stitchwork.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUERIES = 64, MOST_THREADS = 64 };

typedef struct {
    const char *path;
    const st_model *model;
    const double *X, *expected, *covered;
    long rounds, wrong;
} asker;

static long ask(const st_model *M, const asker *J)
{
    const int d = st_features(M), t = st_outputs(M);
    const size_t row = sizeof(double) * (size_t)t;
    double *F = calloc((size_t)QUERIES * t * (1 + d), sizeof *F), *G = F + (size_t)QUERIES * t, covered;
    if (!F) return 1;
    long wrong = st_batch(M, QUERIES, J->X, F, G, NULL) != ST_OK || memcmp(F, J->expected, QUERIES * row);
    for (long i = 0; i < QUERIES; i++) {
        const double *x = J->X + i * d;
        wrong += st_value(M, x, F) != ST_OK || memcmp(F, J->expected + i * t, row);
        wrong += st_gradient(M, x, F, G) != ST_OK || memcmp(F, J->expected + i * t, row);
        wrong += st_coverage(M, x, &covered) != ST_OK || covered != J->covered[i];
    }
    free(F);
    return wrong;
}

static void *work_on(void *argument)
{
    asker *J = argument;
    for (long round = 0; round < J->rounds; round++) {
        st_model *own = NULL;
        J->wrong += ask(J->model, J);
        if (st_open(J->path, &own))
            J->wrong++;
        else
            J->wrong += ask(own, J);
        st_close(own);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    if (count != 4) return 2;
    const int threads = atoi(arguments[2]);
    st_model *M = NULL;
    if (threads < 1 || threads > MOST_THREADS || st_open(arguments[1], &M)) return 2;
    const int d = st_features(M), t = st_outputs(M);
    double *X = calloc((size_t)QUERIES * d, sizeof *X), *F = calloc((size_t)QUERIES * t, sizeof *F),
           *C = calloc(QUERIES, sizeof *C);
    if (!X || !F || !C) return 2;
    for (long i = 0; i < QUERIES * d; i++) X[i] = (double)((i * 7919) % 1009) / 1009.0;
    for (long i = 0; i < QUERIES; i++)
        if (st_value(M, X + i * d, F + i * t) || st_coverage(M, X + i * d, C + i)) return 2;
    pthread_t thread[MOST_THREADS];
    asker askers[MOST_THREADS];
    long wrong = 0;
    for (int k = 0; k < threads; k++) {
        const asker one = {arguments[1], M, X, F, C, atol(arguments[3]), 0};
        askers[k] = one;
        if (pthread_create(&thread[k], NULL, work_on, &askers[k])) return 2;
    }
    for (int k = 0; k < threads; k++) {
        pthread_join(thread[k], NULL);
        wrong += askers[k].wrong;
    }
    st_close(M);
    free(X), free(F), free(C);
    printf("%d threads, %ld wrong answers\n", threads, wrong);
    return wrong > 0;
}
