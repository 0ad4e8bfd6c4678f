/* For R, whose `.C` passes pointers alone: a model's handle is kept in eight raw bytes. See table.R. */
#include "stitchwork.h"

#include <string.h>

void table_open(char **path, unsigned char *handle, int *sizes, int *status)
{
    st_model *model = NULL;
    *status = st_open(*path, &model);
    if (!*status) sizes[0] = st_features(model), sizes[1] = st_outputs(model);
    memcpy(handle, &model, sizeof model);
}

/* Points are the columns of X (d, n); F is (t, n), G (d, t, n). */
void table_gradient(unsigned char *handle, int *n, double *X, double *F, double *G, int *status)
{
    st_model *model;
    memcpy(&model, handle, sizeof model);
    *status = st_batch(model, *n, X, F, G, NULL);
}

void table_close(unsigned char *handle)
{
    st_model *model;
    memcpy(&model, handle, sizeof model);
    st_close(model);
    memset(handle, 0, sizeof model);
}
