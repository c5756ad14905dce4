// Dummy source → saxpy operators → benchmark sink in oneTBB's parallel_pipeline.

#include "../kernel/program.hpp"
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/version.h>
#include <memory>
#include <vector>

struct Setting {
    bool parallel;        // saxpy filters can run in parallel
    std::size_t tokens;   // chunks in flight per core
};

static const std::vector<Variant> variants = {
    {"default", "saxpy filters parallel, ends serial and in order, 4 chunks of 16 KiB per core", true, 16 << 10, {1, 2}},
    {"best", "the same with 2 chunks of 64 KiB per core", true, 64 << 10, {1, 2}},
    {"in_order", "every filter serial and in order, 4 chunks of 16 KiB per core", true, 16 << 10, {1, 2}},
};
static const std::vector<Setting> settings = {{true, 4}, {true, 2}, {false, 4}};

static void run(const Asked& asked) {
    namespace tbb = oneapi::tbb;
    pin(asked.on, asked.cores);
    tbb::global_control threads(tbb::global_control::max_allowed_parallelism, asked.cores);
    const Setting setting = settings[asked.variant];
    const std::size_t tokens = setting.tokens * asked.cores;
    const std::size_t len = variants[asked.variant].quantum / sizeof(float);
    std::vector<std::unique_ptr<float[], Free>> chunks;
    for (std::size_t n = 0; n < 2 * tokens; n++) chunks.push_back(samples(len));
    std::size_t next = 0;
    Count count(asked.seconds);
    const auto mode = setting.parallel ? tbb::filter_mode::parallel : tbb::filter_mode::serial_in_order;
    // At most `tokens` chunks are in flight, so the next chunk to use has come back.
    tbb::filter<void, float*> chain = tbb::make_filter<void, float*>(
        tbb::filter_mode::serial_in_order, [&](tbb::flow_control&) { return chunks[next++ % chunks.size()].get(); });
    for (std::size_t kernel = 0; kernel < asked.kernels; kernel++)
        chain = chain & tbb::make_filter<float*, float*>(mode, [len, affine = asked.affine](float* chunk) {
            onbeat_saxpy(chunk, len, affine);
            return chunk;
        });
    tbb::parallel_pipeline(
        tokens, chain & tbb::make_filter<float*, void>(
                            tbb::filter_mode::serial_in_order, [&](float*) { count.add(len); }));
}

int main(int argc, char** argv) {
    const std::string version = std::to_string(TBB_VERSION_MAJOR) + "." + std::to_string(TBB_VERSION_MINOR);
    return program("tbb", version, variants, argc, argv, run);
}
