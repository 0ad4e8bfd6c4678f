/* Answers of a compiled library that is not linked but loaded, as Python does it: golden library model.stitch < points
 * Points are d numbers each; f and g of each are printed on a line, outputs one after the other. */
#include <stdio.h>
#include <stdlib.h>

#include "stitchwork.h"
#ifdef _WIN32
#include <windows.h>
#define LOAD(name) ((void *)GetProcAddress(library, #name))
#else
#include <dlfcn.h>
#define LOAD(name) dlsym(library, #name)
#endif

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
#ifdef _WIN32
    HMODULE library = LoadLibraryA(argv[1]);
#else
    void *library = dlopen(argv[1], RTLD_NOW);
#endif
    if (!library) return fprintf(stderr, "the library cannot be loaded\n"), 3;
    int (*open_model)(const char *, st_model **) = LOAD(st_open);
    int (*features)(const st_model *) = LOAD(st_features), (*outputs)(const st_model *) = LOAD(st_outputs);
    int (*ask)(const st_model *, const double *, double *, double *) = LOAD(st_gradient);
    int (*ask_all)(const st_model *, long, const double *, double *, double *, double *) = LOAD(st_batch);
    void (*close_model)(st_model *) = LOAD(st_close);
    st_model *model;
    int status = open_model(argv[2], &model);
    if (status) return fprintf(stderr, "status %d\n", status), 4;
    const int d = features(model), t = outputs(model);
    double x[16], f[16], g[256], F[16], G[256];
    for (;;) {
        for (int k = 0; k < d; k++)
            if (scanf("%lf", &x[k]) != 1) return close_model(model), 0;
        if (ask(model, x, f, g) || ask_all(model, 1, x, F, G, NULL)) return 5;
        for (int i = 0; i < t; i++)
            if (f[i] != F[i]) return 6;
        for (int i = 0; i < t; i++) printf("%.17g ", f[i]);
        for (int i = 0; i < t * d; i++) printf("%.17g%s", g[i], i + 1 < t * d ? " " : "\n");
    }
}
