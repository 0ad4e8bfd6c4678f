// Value and gradient of a saved model at one point: table model.stitch x1 x2 …
#include "stitchwork.hpp"

#include <cstdio>
#include <cstdlib>

int main(int argc, char **argv) try {
    const stitchwork::Model model(argc > 1 ? argv[1] : "");
    std::vector<double> x;
    for (int k = 2; k < argc; k++) x.push_back(std::strtod(argv[k], nullptr));
    const stitchwork::Jet jet = model(x);
    for (std::size_t o = 0; o < model.outputs(); o++) {
        std::printf("%.17g", jet.value[o]);
        for (std::size_t k = 0; k < model.features(); k++) std::printf(" %.17g", jet.gradient[o * model.features() + k]);
        std::printf("\n");
    }
    return 0;
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
