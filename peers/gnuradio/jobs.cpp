// The jobs of `onbeat bench jobs` in GNU Radio 3.10: `fm`, `spectrum` and `channelizer`, from file to file.
//
//   jobs list
//   jobs VARIANT JOB FOLDER RESULT CORE,...    one measurement: {"samples": samples read, "seconds": of the run}

#include <chrono>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <gnuradio/analog/quadrature_demod_cf.h>
#include <gnuradio/blocks/complex_to_mag_squared.h>
#include <gnuradio/blocks/file_sink.h>
#include <gnuradio/blocks/file_source.h>
#include <gnuradio/blocks/integrate.h>
#include <gnuradio/blocks/nlog10_ff.h>
#include <gnuradio/blocks/rotator_cc.h>
#include <gnuradio/blocks/stream_to_streams.h>
#include <gnuradio/blocks/stream_to_vector.h>
#include <gnuradio/blocks/streams_to_stream.h>
#include <gnuradio/constants.h>
#include <gnuradio/fft/fft_v.h>
#include <gnuradio/fft/window.h>
#include <gnuradio/filter/fir_filter_blk.h>
#include <gnuradio/filter/iir_filter_ffd.h>
#include <gnuradio/filter/pfb_channelizer_ccf.h>
#include <gnuradio/filter/rational_resampler.h>
#include <gnuradio/top_block.h>
#include <sched.h>
#include <sstream>
#include <string>
#include <vector>

using Chain = std::vector<gr::basic_block_sptr>;
static const double pi = 3.14159265358979323846;

static std::vector<float> taps(const std::string& path) {
    std::ifstream file(path);
    std::vector<float> all;
    for (float tap; file >> tap;) all.push_back(tap);
    if (all.empty()) {
        std::fprintf(stderr, "%s: no taps\n", path.c_str());
        std::exit(1);
    }
    return all;
}

// The specification of onbeat's pipeline, with its taps.
static Chain fm(const std::string& folder) {
    const double rate = 256e3, tau = 50e-6, k = 2 * 48e3 * tau;
    return {
        gr::blocks::rotator_cc::make(-2 * pi * 40e3 / rate),
        gr::filter::fir_filter_ccf::make(2, taps(folder + "/channel.taps")),
        gr::analog::quadrature_demod_cf::make(static_cast<float>(rate / 2 / (2 * pi * 25e3))),
        gr::filter::fir_filter_fff::make(4, taps(folder + "/band.taps")),
        gr::filter::rational_resampler<float, float, float>::make(3, 2, taps(folder + "/rate.taps")),
        // The bilinear transform of 1 / (1 + s tau).
        gr::filter::iir_filter_ffd::make({1 / (k + 1), 1 / (k + 1)}, {1, -(k - 1) / (k + 1)}, false),
    };
}

static Chain spectrum() {
    const int size = 1024, average = 16;
    std::vector<float> window;
    double sum = 0;
    for (int n = 0; n < size; n++) {
        window.push_back(static_cast<float>(0.5 - 0.5 * std::cos(2 * pi * n / size)));
        sum += window.back();
    }
    const float scale_db = static_cast<float>(-10 * std::log10(sum * sum * average));
    return {
        gr::blocks::stream_to_vector::make(sizeof(gr_complex), size),
        gr::fft::fft_v<gr_complex, true>::make(size, window, true, 1),
        gr::blocks::complex_to_mag_squared::make(size),
        gr::blocks::integrate_ff::make(average, size),
        gr::blocks::nlog10_ff::make(10, size, scale_db),
    };
}

// Its channels are 0 Hz at the last sample of a row of input; the bench expects that of the first one. So the input starts at its
// second sample, and a tap in front keeps the delay a whole number of rows.
static const int channels = 16;
static Chain channelizer(const std::string& folder) {
    std::vector<float> all = taps(folder + "/channels.taps");
    all.insert(all.begin(), 0);
    return {
        gr::blocks::stream_to_streams::make(sizeof(gr_complex), channels),
        gr::filter::pfb_channelizer_ccf::make(channels, all, 1),
        gr::blocks::streams_to_stream::make(sizeof(gr_complex), channels),
    };
}

static int list() {
    const std::pair<const char*, const char*> variants[] = {
        {"default", "as it comes: a thread per block, buffers of 64 KiB"},
        {"best", "buffers of 1 MiB, blocks pinned one after the other"},
    };
    for (const auto& [name, how] : variants)
        std::printf(
            "{\"peer\": \"gnuradio\", \"version\": \"%s\", \"variant\": \"%s\", \"how\": \"%s\", \"jobs\": [\"fm\", "
            "\"spectrum\", \"channelizer\"], \"cores\": [1, 2]}\n",
            gr::version().c_str(), name, how);
    return 0;
}

int main(int argc, char** argv) {
    if (argc == 2 && std::string(argv[1]) == "list") return list();
    if (argc != 6) {
        std::fprintf(stderr, "usage: list | VARIANT JOB FOLDER RESULT CORE,...\n");
        return 2;
    }
    const std::string variant = argv[1], job = argv[2], folder = argv[3], result = argv[4];
    std::vector<int> on;
    std::istringstream cores(argv[5]);
    cpu_set_t set;
    CPU_ZERO(&set);
    for (std::string core; std::getline(cores, core, ',');) {
        on.push_back(std::atoi(core.c_str()));
        CPU_SET(on.back(), &set);
    }
    // All threads inherit these cores.
    if (sched_setaffinity(0, sizeof set, &set) != 0) std::perror("cores");

    const bool is_split = job == "channelizer";
    Chain work = job == "fm" ? fm(folder) : job == "spectrum" ? spectrum() : is_split ? channelizer(folder) : Chain{};
    if (work.empty()) {
        std::fprintf(stderr, "it has no job `%s`\n", job.c_str());
        return 2;
    }
    auto source = gr::blocks::file_source::make(sizeof(gr_complex), (folder + "/input").c_str(), false, is_split ? 1 : 0);
    const std::size_t item = is_split ? sizeof(gr_complex) : job == "fm" ? sizeof(float) : 1024 * sizeof(float);
    Chain all = {source};
    all.insert(all.end(), work.begin(), work.end());
    all.push_back(gr::blocks::file_sink::make(item, result.c_str()));
    auto top = gr::make_top_block("jobs");
    for (std::size_t at = 0; at < all.size(); at++) {
        // Only between the blocks of the channelizer.
        const int streams = is_split && at >= 1 && at <= 2 ? channels : 1;
        for (int stream = 0; at + 1 < all.size() && stream < streams; stream++) top->connect(all[at], stream, all[at + 1], stream);
        auto block = std::dynamic_pointer_cast<gr::block>(all[at]);
        if (variant != "best" || !block) continue;
        const std::size_t bytes = block->output_signature()->max_streams() == 0 ? 0 : block->output_signature()->sizeof_stream_item(0);
        if (bytes > 0) block->set_min_output_buffer((1 << 20) / bytes);
        block->set_processor_affinity({on[std::min(at * on.size() / all.size(), on.size() - 1)]});
    }
    const auto begin = std::chrono::steady_clock::now();
    top->run();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    // So that the result is whole.
    all.clear();
    std::printf("{\"samples\": %llu, \"seconds\": %.9f}\n", static_cast<unsigned long long>(source->nitems_written(0)), seconds);
    return 0;
}
