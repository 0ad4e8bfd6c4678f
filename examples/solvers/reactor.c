/* A reactor whose chemistry is a table: dδ/dt = S(δ), where a saved model gives S (t = d outputs) and its Jacobian.
 *
 * Rosenbrock's method of second order with γ = 1 + 1/√2, which is L-stable, as stiff chemistry wants:
 *     (I - γ h J) k₁ = S(δ),  (I - γ h J) k₂ = S(δ + h k₁) - 2 k₁,  δ ← δ + h (3 k₁ + k₂) / 2.
 * reactor table.stitch time steps δ1 δ2 … prints the state at the end and the least coverage on the way.
 */
#include "stitchwork.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8 };

/* Solve A x = b by elimination with pivots, in place. */
static void solve(int n, double A[MOST][MOST], double *b)
{
    for (int k = 0; k < n; k++) {
        int pivot = k;
        for (int i = k + 1; i < n; i++)
            if (fabs(A[i][k]) > fabs(A[pivot][k])) pivot = i;
        for (int j = 0; j < n; j++) {
            double swap = A[k][j];
            A[k][j] = A[pivot][j], A[pivot][j] = swap;
        }
        double swap = b[k];
        b[k] = b[pivot], b[pivot] = swap;
        for (int i = k + 1; i < n; i++) {
            double factor = A[i][k] / A[k][k];
            for (int j = k; j < n; j++) A[i][j] -= factor * A[k][j];
            b[i] -= factor * b[k];
        }
    }
    for (int k = n - 1; k >= 0; k--) {
        for (int j = k + 1; j < n; j++) b[k] -= A[k][j] * b[j];
        b[k] /= A[k][k];
    }
}

static int step(const st_model *table, int d, double h, double *state)
{
    const double gamma = 1.0 + 1.0 / sqrt(2.0);
    double S[MOST], J[MOST * MOST], A[2][MOST][MOST], k1[MOST], k2[MOST], ahead[MOST];
    int status = st_gradient(table, state, S, J);
    if (status) return status;
    for (int i = 0; i < d; i++)
        for (int j = 0; j < d; j++) A[0][i][j] = A[1][i][j] = (i == j) - gamma * h * J[i * d + j];
    memcpy(k1, S, sizeof k1);
    solve(d, A[0], k1);
    for (int i = 0; i < d; i++) ahead[i] = state[i] + h * k1[i];
    status = st_value(table, ahead, S);
    if (status) return status;
    for (int i = 0; i < d; i++) k2[i] = S[i] - 2.0 * k1[i];
    solve(d, A[1], k2);
    for (int i = 0; i < d; i++) state[i] += h * (1.5 * k1[i] + 0.5 * k2[i]);
    return ST_OK;
}

int main(int argc, char **argv)
{
    st_model *table = NULL;
    double state[MOST] = {0}, least = 1.0, c = 1.0;
    const int d = argc - 4;
    int status = argc > 4 ? st_open(argv[1], &table) : ST_NULL;
    if (!status) status = d <= MOST ? st_expect(table, d, d) : ST_OTHER_MODEL;
    if (!status) {
        const long steps = atol(argv[3]);
        const double h = strtod(argv[2], NULL) / (double)steps;
        for (int k = 0; k < d; k++) state[k] = strtod(argv[k + 4], NULL);
        for (long i = 0; i < steps && !status; i++) {
            status = step(table, d, h, state);
            if (!status) status = st_coverage(table, state, &c);
            least = c < least ? c : least;
        }
    }
    if (status) fprintf(stderr, "%s\n", st_message(status));
    for (int k = 0; k < d && !status; k++) printf("%.17g ", state[k]);
    if (!status) printf("%.17g\n", least);
    st_close(table);
    return status;
}
