// A fitted model in C++: opened when made, closed when it goes, every status an exception.
#ifndef STITCHWORK_HPP
#define STITCHWORK_HPP

#include "stitchwork.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace stitchwork {

struct Jet {
    std::vector<double> value, gradient;  // [t], [t * d]
};

class Model {
public:
    explicit Model(const std::string &path) {
        st_model *opened = nullptr;
        check(st_open(path.c_str(), &opened));
        handle.reset(opened);
    }
    std::size_t features() const { return static_cast<std::size_t>(st_features(handle.get())); }
    std::size_t outputs() const { return static_cast<std::size_t>(st_outputs(handle.get())); }

    Jet operator()(const std::vector<double> &x) const {
        if (x.size() != features()) throw std::invalid_argument("x must have " + std::to_string(features()) + " features");
        Jet jet{std::vector<double>(outputs()), std::vector<double>(outputs() * features())};
        check(st_gradient(handle.get(), x.data(), jet.value.data(), jet.gradient.data()));
        return jet;
    }
    const st_model *get() const { return handle.get(); }  // for everything else in stitchwork.h

private:
    struct Close {
        void operator()(st_model *model) const { st_close(model); }
    };
    static void check(int status) {
        if (status) throw std::runtime_error(st_message(status));
    }
    std::unique_ptr<st_model, Close> handle;
};

}  // namespace stitchwork
#endif
