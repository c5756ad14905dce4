// Command line and output of the programs in C++.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <sched.h>
#include <sstream>
#include <string>
#include <vector>

// The function that onbeat's own operator calls: kernel/src/lib.rs.
struct Affine;
extern "C" const Affine* onbeat_affine(float a, float b);
extern "C" void onbeat_saxpy(float* y, std::size_t len, const Affine* affine);
extern "C" void onbeat_saxpy_into(const float* x, float* y, std::size_t len, const Affine* affine);

struct Variant {
    std::string name, how;
    bool in_place;
    std::size_t quantum;  // bytes per call of an operator
    std::vector<std::size_t> cores;  // supported numbers of cores
};

struct Asked {
    std::size_t variant, cores, kernels;
    double seconds;
    std::vector<std::size_t> on;  // the cores to use
    const Affine* affine;
};

// Counts samples; at the end prints the rate and ends the process.
class Count {
    using Clock = std::chrono::steady_clock;
    double seconds;
    bool is_begun = false, is_warm = false;
    Clock::time_point begin;
    std::uint64_t samples = 0, calls = 0;

  public:
    explicit Count(double seconds) : seconds(seconds) {}

    void add(std::size_t count) {
        samples += count;
        // To read the clock costs 20 ns, so it is not read each time.
        if (++calls % 64 == 0) look();
    }

  private:
    __attribute__((noinline)) void look() {
        const auto now = Clock::now();
        if (!is_begun) {
            is_begun = true;
            begin = now;
            return;
        }
        const double passed = std::chrono::duration<double>(now - begin).count();
        if (!is_warm && passed >= seconds / 10) {
            is_warm = true;
            begin = now;
            samples = 0;
        } else if (is_warm && passed >= seconds) {
            std::printf("{\"rate\": %.6e}\n", samples / passed);
            std::fflush(stdout);
            std::_Exit(0);
        }
    }
};

struct Free {
    void operator()(float* samples) const { std::free(samples); }
};

// Aligned to a cache line.
inline std::unique_ptr<float[], Free> samples(std::size_t len) {
    float* all = static_cast<float*>(std::aligned_alloc(64, (len * sizeof(float) + 63) / 64 * 64));
    if (all == nullptr) std::abort();
    for (std::size_t at = 0; at < len; at++) all[at] = 0.5f;
    return std::unique_ptr<float[], Free>(all);
}

// Pins the calling thread, and the threads that it starts, to these cores.
inline void pin(const std::vector<std::size_t>& on, std::size_t cores) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (std::size_t at = 0; at < cores && at < on.size(); at++) CPU_SET(on[at], &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) std::perror("cores");
}

inline int program(
    const std::string& peer, const std::string& version, const std::vector<Variant>& variants, int argc, char** argv,
    const std::function<void(const Asked&)>& run) {
    if (argc == 2 && std::string(argv[1]) == "list") {
        for (const Variant& variant : variants) {
            std::string cores;
            for (std::size_t count : variant.cores) cores += (cores.empty() ? "" : ", ") + std::to_string(count);
            std::printf(
                "{\"peer\": \"%s\", \"version\": \"%s\", \"variant\": \"%s\", \"how\": \"%s\", \"in_place\": %s, \"quantum\": "
                "%zu, \"cores\": [%s]}\n",
                peer.c_str(), version.c_str(), variant.name.c_str(), variant.how.c_str(),
                variant.in_place ? "true" : "false", variant.quantum, cores.c_str());
        }
        return 0;
    }
    if (argc == 6) {
        // Hides the factors from the compiler.
        volatile float a = 1.0f, b = 0.0f;
        Asked asked{variants.size(), std::strtoul(argv[2], nullptr, 10), std::strtoul(argv[3], nullptr, 10),
                    std::strtod(argv[4], nullptr), {}, onbeat_affine(a, b)};
        for (std::size_t at = 0; at < variants.size(); at++)
            if (variants[at].name == argv[1]) asked.variant = at;
        std::istringstream list(argv[5]);
        for (std::string core; std::getline(list, core, ',');) asked.on.push_back(std::strtoul(core.c_str(), nullptr, 10));
        if (asked.variant < variants.size() && asked.cores > 0 && asked.kernels > 0 && asked.seconds > 0 &&
            asked.on.size() >= asked.cores) {
            run(asked);
            std::fprintf(stderr, "it ended by itself\n");
            return 1;
        }
    }
    std::fprintf(stderr, "usage: list | VARIANT CORES KERNELS SECONDS CORE,...\n");
    return 2;
}
