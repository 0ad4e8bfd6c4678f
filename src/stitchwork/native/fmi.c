/* A saved model as a functional mock-up unit, for FMI 2.0: model exchange and co-simulation.
 *
 * The unit is a function without states or time. In its resources lie the file model.stitch and start.bin, the d values that its
 * inputs begin with, as doubles. Value references 0 … d - 1 are the inputs, d … d + t - 1 the outputs, as
 * `stitchwork.fmi.write_fmu` describes them. Directional derivatives are exact.
 * The declarations are those of the standard (fmi-standard.org), as far as they are needed.
 */
#include "stitchwork.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#define FMI_API __declspec(dllexport)
#elif defined(__GNUC__)
#define FMI_API __attribute__((visibility("default")))
#else
#define FMI_API
#endif

typedef enum { fmi2OK, fmi2Warning, fmi2Discard, fmi2Error, fmi2Fatal, fmi2Pending } fmi2Status;
typedef struct unit unit;
typedef unsigned int reference;

typedef struct {
    void (*logger)(void *environment, const char *name, fmi2Status status, const char *category, const char *message, ...);
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void (*finished)(void *, fmi2Status);
    void *environment;
} callbacks;

typedef struct {
    int new_discrete_states, terminate, nominals_changed, values_changed, next_event_defined;
    double next_event_time;
} event_info;

struct unit {
    st_model *model;
    callbacks calls;
    int known;                 /* whether f and g are those of x */
    double *x, *f, *g, *start; /* [d], [t], [t * d], [d] */
    char name[];
};

static fmi2Status complain(const unit *U, const char *message)
{
    if (U->calls.logger) U->calls.logger(U->calls.environment, U->name, fmi2Error, "logStatusError", "%s", message);
    return fmi2Error;
}

static fmi2Status answer(unit *U)
{
    const int rough = st_smoothness(U->model) < 1;
    const int status = U->known ? ST_OK : rough ? st_value(U->model, U->x, U->f) : st_gradient(U->model, U->x, U->f, U->g);
    if (status) return complain(U, st_message(status));
    U->known = 1;
    return fmi2OK;
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The path of a file in a folder that is named as file:///folder, with signs as %20; the caller's to free. */
static char *find_file(const char *location, const char *file)
{
    const char *at = location;
    char *path = malloc(strlen(location) + strlen(file) + 1), *to = path;
    if (!path) return NULL;
    if (!strncmp(at, "file:", 5)) at += 5;
    if (!strncmp(at, "//", 2)) at += 2;
    if (at[0] == '/' && at[1] && at[2] == ':') at++; /* /C:/folder */
    for (; *at; at++) {
        if (*at == '%' && digit(at[1]) >= 0 && digit(at[2]) >= 0) {
            *to++ = (char)(16 * digit(at[1]) + digit(at[2]));
            at += 2;
        } else
            *to++ = *at;
    }
    strcpy(to, file);
    return path;
}

FMI_API const char *fmi2GetTypesPlatform(void) { return "default"; }
FMI_API const char *fmi2GetVersion(void) { return "2.0"; }

FMI_API fmi2Status fmi2SetDebugLogging(unit *U, int on, size_t n, const char *const *categories)
{
    (void)U, (void)on, (void)n, (void)categories;
    return fmi2OK;
}

FMI_API void fmi2FreeInstance(unit *U)
{
    if (!U) return;
    st_close(U->model);
    free(U->x), free(U);
}

FMI_API fmi2Status fmi2Reset(unit *U)
{
    memcpy(U->x, U->start, sizeof *U->x * (size_t)st_features(U->model));
    U->known = 0;
    return fmi2OK;
}

FMI_API unit *fmi2Instantiate(const char *name, int type, const char *guid, const char *resources, const callbacks *calls,
                              int visible, int logging)
{
    (void)type, (void)guid, (void)visible, (void)logging;
    if (!name || !resources) return NULL;
    unit *U = calloc(1, sizeof *U + strlen(name) + 1);
    char *path = find_file(resources, "/model.stitch"), *start = find_file(resources, "/start.bin");
    if (!U || !path || !start) return free(U), free(path), free(start), NULL;
    strcpy(U->name, name);
    if (calls) U->calls = *calls;
    const int status = st_open(path, &U->model);
    FILE *file = fopen(start, "rb");
    free(path), free(start);
    if (!status && file) {
        const size_t d = (size_t)st_features(U->model), t = (size_t)st_outputs(U->model);
        U->x = calloc(2 * d + t + t * d, sizeof *U->x);
        if (U->x) U->start = U->x + d, U->f = U->start + d, U->g = U->f + t;
        if (U->x && fread(U->start, sizeof *U->x, d, file) != d) free(U->x), U->x = NULL;
    }
    if (file) fclose(file);
    if (status) complain(U, st_message(status));
    if (!U->x) return fmi2FreeInstance(U), NULL;
    fmi2Reset(U);
    return U;
}

FMI_API fmi2Status fmi2GetReal(unit *U, const reference *which, size_t n, double *value)
{
    const reference d = (reference)st_features(U->model), t = (reference)st_outputs(U->model);
    for (size_t i = 0; i < n; i++) {
        if (which[i] >= d + t) return complain(U, "there is no such variable");
        if (which[i] >= d && answer(U)) return fmi2Error;
        value[i] = which[i] < d ? U->x[which[i]] : U->f[which[i] - d];
    }
    return fmi2OK;
}

FMI_API fmi2Status fmi2SetReal(unit *U, const reference *which, size_t n, const double *value)
{
    for (size_t i = 0; i < n; i++) {
        if (which[i] >= (reference)st_features(U->model)) return complain(U, "only inputs can be set");
        U->x[which[i]] = value[i];
    }
    U->known = 0;
    return fmi2OK;
}

/* ∂unknown · seed: exact, by the gradient. */
FMI_API fmi2Status fmi2GetDirectionalDerivative(unit *U, const reference *unknown, size_t n, const reference *known, size_t m,
                                                const double *seed, double *value)
{
    const reference d = (reference)st_features(U->model), t = (reference)st_outputs(U->model);
    if (st_smoothness(U->model) < 1) return complain(U, st_message(ST_NOT_SMOOTH));
    if (answer(U)) return fmi2Error;
    for (size_t i = 0; i < n; i++) {
        if (unknown[i] < d || unknown[i] >= d + t) return complain(U, "derivatives are those of outputs");
        value[i] = 0.0;
        for (size_t k = 0; k < m; k++) {
            if (known[k] >= d) return complain(U, "derivatives are by inputs");
            value[i] += U->g[(size_t)(unknown[i] - d) * d + known[k]] * seed[k];
        }
    }
    return fmi2OK;
}

/* A function of its inputs has no time, no events and no states: the calls of both interfaces that are about them do nothing. */
#define NOTHING(name, arguments, ...) \
    FMI_API fmi2Status name arguments \
    {                                 \
        __VA_ARGS__;                  \
        return fmi2OK;                \
    }
NOTHING(fmi2SetupExperiment, (unit * U, int a, double b, double c, int e, double f), (void)U, (void)a, (void)b, (void)c, (void)e,
        (void)f)
NOTHING(fmi2EnterInitializationMode, (unit * U), (void)U)
NOTHING(fmi2ExitInitializationMode, (unit * U), (void)U)
NOTHING(fmi2Terminate, (unit * U), (void)U)
NOTHING(fmi2EnterEventMode, (unit * U), (void)U)
NOTHING(fmi2EnterContinuousTimeMode, (unit * U), (void)U)
NOTHING(fmi2SetTime, (unit * U, double time), (void)U, (void)time)
NOTHING(fmi2SetContinuousStates, (unit * U, const double *x, size_t n), (void)U, (void)x, (void)n)
NOTHING(fmi2GetContinuousStates, (unit * U, double *x, size_t n), (void)U, (void)x, (void)n)
NOTHING(fmi2GetNominalsOfContinuousStates, (unit * U, double *x, size_t n), (void)U, (void)x, (void)n)
NOTHING(fmi2GetDerivatives, (unit * U, double *x, size_t n), (void)U, (void)x, (void)n)
NOTHING(fmi2GetEventIndicators, (unit * U, double *x, size_t n), (void)U, (void)x, (void)n)
NOTHING(fmi2DoStep, (unit * U, double at, double step, int keep), (void)U, (void)at, (void)step, (void)keep)
NOTHING(fmi2CompletedIntegratorStep, (unit * U, int keep, int *event, int *stop), (void)U, (void)keep, *event = 0, *stop = 0)
NOTHING(fmi2NewDiscreteStates, (unit * U, event_info *info), (void)U, memset(info, 0, sizeof *info))

/* What a unit does not have is refused, unless nothing is asked for. */
#define REFUSED(name, arguments, n, ...)                                              \
    FMI_API fmi2Status name arguments                                                 \
    {                                                                                 \
        __VA_ARGS__;                                                                  \
        return n ? complain(U, #name ": the unit has nothing of that kind") : fmi2OK; \
    }
REFUSED(fmi2GetInteger, (unit * U, const reference *r, size_t n, int *v), n, (void)r, (void)v)
REFUSED(fmi2SetInteger, (unit * U, const reference *r, size_t n, const int *v), n, (void)r, (void)v)
REFUSED(fmi2GetBoolean, (unit * U, const reference *r, size_t n, int *v), n, (void)r, (void)v)
REFUSED(fmi2SetBoolean, (unit * U, const reference *r, size_t n, const int *v), n, (void)r, (void)v)
REFUSED(fmi2GetString, (unit * U, const reference *r, size_t n, const char **v), n, (void)r, (void)v)
REFUSED(fmi2SetString, (unit * U, const reference *r, size_t n, const char *const *v), n, (void)r, (void)v)
REFUSED(fmi2SetRealInputDerivatives, (unit * U, const reference *r, size_t n, const int *o, const double *v), n, (void)r, (void)o,
        (void)v)
REFUSED(fmi2GetRealOutputDerivatives, (unit * U, const reference *r, size_t n, const int *o, double *v), n, (void)r, (void)o,
        (void)v)
REFUSED(fmi2GetFMUstate, (unit * U, void **state), 1, (void)state)
REFUSED(fmi2SetFMUstate, (unit * U, void *state), 1, (void)state)
REFUSED(fmi2FreeFMUstate, (unit * U, void **state), 1, (void)state)
REFUSED(fmi2SerializedFMUstateSize, (unit * U, void *state, size_t *size), 1, (void)state, (void)size)
REFUSED(fmi2SerializeFMUstate, (unit * U, void *state, unsigned char *to, size_t size), 1, (void)state, (void)to, (void)size)
REFUSED(fmi2DeSerializeFMUstate, (unit * U, const unsigned char *from, size_t size, void **state), 1, (void)from, (void)size,
        (void)state)
REFUSED(fmi2CancelStep, (unit * U), 1, (void)U)
REFUSED(fmi2GetStatus, (unit * U, int kind, fmi2Status *v), 1, (void)kind, (void)v)
REFUSED(fmi2GetRealStatus, (unit * U, int kind, double *v), 1, (void)kind, (void)v)
REFUSED(fmi2GetIntegerStatus, (unit * U, int kind, int *v), 1, (void)kind, (void)v)
REFUSED(fmi2GetBooleanStatus, (unit * U, int kind, int *v), 1, (void)kind, (void)v)
REFUSED(fmi2GetStringStatus, (unit * U, int kind, const char **v), 1, (void)kind, (void)v)
