/* Value, gradient and coverage of a saved model at one point: table model.stitch x1 x2 … */
#include "stitchwork.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    st_model *model = NULL;
    double x[16], f[16], g[256], c;
    int status = argc > 1 ? st_open(argv[1], &model) : ST_NULL;
    if (!status) status = st_features(model) == argc - 2 && argc - 2 <= 16 && st_outputs(model) <= 16 ? ST_OK : ST_OTHER_MODEL;
    for (int k = 0; k < argc - 2 && !status; k++) x[k] = strtod(argv[k + 2], NULL);
    if (!status) status = st_gradient(model, x, f, g);
    if (!status) status = st_coverage(model, x, &c);
    if (status) {
        fprintf(stderr, "%s\n", st_message(status));
    } else {
        for (int o = 0; o < st_outputs(model); o++) {
            printf("%.17g", f[o]);
            for (int k = 0; k < st_features(model); k++) printf(" %.17g", g[o * st_features(model) + k]);
            printf("\n");
        }
        printf("%.17g\n", c);
    }
    st_close(model);
    return status;
}
