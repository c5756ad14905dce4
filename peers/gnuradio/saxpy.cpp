// Dummy source → saxpy operators → benchmark sink in GNU Radio 3.10. Its scheduler gives each block a thread.

#include "../kernel/program.hpp"
#include <gnuradio/constants.h>
#include <gnuradio/io_signature.h>
#include <gnuradio/sync_block.h>
#include <gnuradio/top_block.h>

static const auto one = [] { return gr::io_signature::make(1, 1, sizeof(float)); };
static const auto none = [] { return gr::io_signature::make(0, 0, 0); };

// Claims all free room, and writes nothing.
struct DummySource : gr::sync_block {
    DummySource() : gr::sync_block("source", none(), one()) {}
    int work(int count, gr_vector_const_void_star&, gr_vector_void_star&) override { return count; }
};

struct Saxpy : gr::sync_block {
    const Affine* affine;
    explicit Saxpy(const Affine* affine) : gr::sync_block("saxpy", one(), one()), affine(affine) {}
    int work(int count, gr_vector_const_void_star& in, gr_vector_void_star& out) override {
        onbeat_saxpy_into(static_cast<const float*>(in[0]), static_cast<float*>(out[0]), count, affine);
        return count;
    }
};

struct Sink : gr::sync_block {
    Count counted;
    explicit Sink(double seconds) : gr::sync_block("sink", one(), none()), counted(seconds) {}
    int work(int count, gr_vector_const_void_star&, gr_vector_void_star&) override {
        counted.add(count);
        return count;
    }
};

static const std::vector<Variant> variants = {
    {"default", "as it comes: buffers of 64 KiB, half of one at a time", false, 32 << 10, {1, 2}},
    {"best", "buffers of 1 MiB, blocks pinned one after the other", false, 512 << 10, {1, 2}},
};

static void run(const Asked& asked) {
    pin(asked.on, asked.cores);
    auto top = gr::make_top_block("saxpy");
    std::vector<std::shared_ptr<gr::sync_block>> all = {std::make_shared<DummySource>()};
    for (std::size_t kernel = 0; kernel < asked.kernels; kernel++)
        all.push_back(std::make_shared<Saxpy>(asked.affine));
    all.push_back(std::make_shared<Sink>(asked.seconds));
    for (std::size_t at = 0; at < all.size(); at++) {
        if (at + 1 < all.size()) top->connect(all[at], 0, all[at + 1], 0);
        if (variants[asked.variant].name == "best") {
            if (at + 1 < all.size()) all[at]->set_min_output_buffer((1 << 20) / sizeof(float));
            const std::size_t core = asked.on[std::min(at * asked.cores / all.size(), asked.cores - 1)];
            all[at]->set_processor_affinity({static_cast<int>(core)});
        }
    }
    top->run();
}

int main(int argc, char** argv) { return program("gnuradio", gr::version(), variants, argc, argv, run); }
