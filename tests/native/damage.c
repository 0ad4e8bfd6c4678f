/* Opens damaged copies of a model file: damage model.stitch scratch-file count seed
 *
 * Each copy has bits flipped, bytes or numbers replaced, or its end cut off; two in three are signed anew, so that the checks of
 * the content are reached. Whatever opens is asked. Nothing may crash, hang or leak: run it under sanitizers. */
#include "stitchwork.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return below ? state % below : 0;
}

/* CRC-32 bit by bit, as zip files define it. */
static uint32_t crc32_of(const unsigned char *bytes, size_t size)
{
    uint32_t sum = 0xffffffffu;
    while (size--) {
        sum ^= *bytes++;
        for (int bit = 0; bit < 8; bit++) sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0);
    }
    return ~sum;
}

static void sign(unsigned char *file, size_t size)
{
    static const char key[] = "\"crc32\":\"";
    for (size_t i = 8; i + sizeof key + 8 < size && i < 1 << 16; i++)
        if (!memcmp(file + i, key, sizeof key - 1)) {
            char digits[9];
            size_t place = i + sizeof key - 1;
            memcpy(file + place, "00000000", 8);
            snprintf(digits, sizeof digits, "%08x", (unsigned)crc32_of(file, size));
            memcpy(file + place, digits, 8);
            return;
        }
}

static void damage(unsigned char *file, size_t *size)
{
    static const double numbers[] = {NAN, INFINITY, -INFINITY, -1.0, 0.0, 1e308, -1e308, 1e-308, 5e-324, 1e150};
    static const int64_t wholes[] = {-1, INT64_MIN, INT64_MAX, 1 << 30, 0, 1, 1000, -2};
    uint64_t length = 0;
    memcpy(&length, file, 8);
    for (uint64_t wounds = 1 + draw(3); wounds; wounds--) {
        size_t data = 8 + (size_t)length, at = data + 8 * (size_t)draw((*size - data) / 8);
        switch (draw(7)) {
        case 0: file[draw(*size)] ^= (unsigned char)(1u << draw(8)); break;
        case 1: file[8 + draw(length)] = (unsigned char)"0123456789{}[]\",:x\\ "[draw(20)]; break;
        case 2: memcpy(file + at, &numbers[draw(sizeof numbers / sizeof *numbers)], 8); break;
        case 3: memcpy(file + at, &wholes[draw(sizeof wholes / sizeof *wholes)], 8); break;
        case 4: {
            const float number = (float)numbers[draw(5)];
            memcpy(file + data + 4 * (size_t)draw((*size - data) / 4), &number, 4);
            break;
        }
        case 5:
            if (draw(8) == 0) *size = data + (size_t)draw(*size - data + 1);
            break;
        default: { /* another digit somewhere in the header: shapes and offsets */
            for (int tries = 0; tries < 200; tries++) {
                size_t digit = 8 + (size_t)draw(length);
                if (file[digit] >= '0' && file[digit] <= '9') {
                    file[digit] = (unsigned char)('0' + draw(10));
                    break;
                }
            }
        }
        }
        if (*size <= data) return;
    }
}

int main(int argc, char **argv)
{
    long seen[32] = {0}, count = argc == 5 ? atol(argv[3]) : 0;
    FILE *file = argc == 5 ? fopen(argv[1], "rb") : NULL;
    if (!file) return 2;
    fseek(file, 0, SEEK_END);
    const size_t size = (size_t)ftell(file);
    unsigned char *whole = malloc(size), *copy = malloc(size);
    rewind(file);
    if (!whole || !copy || fread(whole, 1, size, file) != size) return 2;
    fclose(file);
    state = 0x9e3779b97f4a7c15ULL * (uint64_t)(1 + atol(argv[4]));
    for (long i = 0; i < count; i++) {
        size_t now = size;
        st_model *model = NULL;
        memcpy(copy, whole, size);
        damage(copy, &now);
        if (draw(3)) sign(copy, now);
        file = fopen(argv[2], "wb");
        if (!file || fwrite(copy, 1, now, file) != now || fclose(file)) return 2;
        int status = st_open(argv[2], &model);
        seen[status]++;
        if (!status) {
            const int d = st_features(model), t = st_outputs(model);
            double *X = calloc((size_t)(8 * d), sizeof *X), *F = calloc((size_t)(8 * t * (1 + d + d * d)), sizeof *F);
            for (int k = 0; k < 8 * d; k++) X[k] = (double)draw(2000) / 1000.0 - 0.5;
            st_batch(model, 8, X, F, st_smoothness(model) >= 1 ? F + 8 * t : NULL, NULL);
            st_coverages(model, 8, X, F);
            st_deviations(model, 8, X, 0, F); /* of those with factors */
            st_value(model, X, F);
            st_part part[4];
            double *share = calloc((size_t)(8 * t), sizeof *share);
            long regions = 0;
            st_contributions(model, X, 4, part, share, share + 4 * t, &regions);
            free(X), free(F), free(share);
        }
        st_close(model);
        model = NULL;
        if (st_open_memory(copy, now, &model) != status) return 3; /* the same bytes in memory */
        st_close(model);
    }
    for (int k = 0; k < 32; k++)
        if (seen[k]) printf("%ld %s\n", seen[k], st_message(k));
    free(whole), free(copy);
    remove(argv[2]);
    return 0;
}
