// A radio for ci/soapy: a SoapySDR module with the driver `loop`. Its receiver counts, or gives what its transmitter
// got. What it does wrong is told by device arguments; what it has done stands in the file `log` at the end.
//
// A sample with the number n is (n mod 65536) / 65536 + i (n / 65536 mod 65536) / 65536, exactly.
//
//   g++ -shared -fPIC -o libloopSupport.so soapy_loopback.cpp -lSoapySDR

#include <SoapySDR/Device.hpp>
#include <SoapySDR/Logger.hpp>
#include <SoapySDR/Registry.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstdio>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

using Sample = std::complex<float>;
using Clock = std::chrono::steady_clock;

namespace {

// Until when no device is there, and which number of device this is: both outlive a device.
Clock::time_point goneUntil{};
int made = 0;

Sample counted(unsigned long long n)
{
    return {float(n % 65536) / 65536, float(n / 65536 % 65536) / 65536};
}

double number(const SoapySDR::Kwargs &args, const std::string &key, double otherwise)
{
    const auto found = args.find(key);
    return found == args.end() ? otherwise : std::stod(found->second);
}

std::string text(const SoapySDR::Kwargs &args, const std::string &key)
{
    const auto found = args.find(key);
    return found == args.end() ? "" : found->second;
}

// A buffer that the device fills or empties in real time.
struct Side
{
    bool isActive = false;
    Clock::time_point begun;
    unsigned long long position = 0; // of the next sample
    unsigned long long reads = 0, passed = 0, dropped = 0, events = 0, ends = 0;
    long long late = 0;
};

class Loop : public SoapySDR::Device
{
public:
    explicit Loop(const SoapySDR::Kwargs &given) : args(given), rate(1e6), frequency(100e6), bandwidth(0), gain(10)
    {
        if (text(args, "fault") == "busy") throw std::runtime_error("usb_claim_interface error: Device or resource busy");
        if (text(args, "fault") == "rights") throw std::runtime_error("LIBUSB_ERROR_ACCESS");
        if (text(args, "fault") == "make") throw std::runtime_error("the loop is broken");
        if (text(args, "fault") == "odd") throw 42;
        if (text(args, "record") != "") record = std::fopen(text(args, "record").c_str(), made == 0 ? "wb" : "ab");
        made++;
    }

    ~Loop() override
    {
        if (record) std::fclose(record);
        if (text(args, "log") == "") return;
        FILE *log = std::fopen(text(args, "log").c_str(), "a");
        std::fprintf(log, "rx %llu passed %llu dropped %llu overflows; tx %llu passed %llu underflows %llu ends\n", rx.passed,
                     rx.dropped, rx.events, tx.passed, tx.events, tx.ends);
        std::fclose(log);
    }

    std::string getDriverKey() const override { return "loop"; }
    std::string getHardwareKey() const override { return "a loop"; }
    size_t getNumChannels(int) const override { return size_t(number(args, "channels", 1)); }
    bool getFullDuplex(int, size_t) const override { return true; }

    std::vector<std::string> getStreamFormats(int, size_t) const override
    {
        if (text(args, "fault") == "format") return {"CS16", "CS8"};
        return {"CF32"};
    }

    std::string getNativeStreamFormat(int, size_t, double &fullScale) const override
    {
        fullScale = 1.0;
        return "CF32";
    }

    SoapySDR::Stream *setupStream(int direction, const std::string &format, const std::vector<size_t> &,
                                  const SoapySDR::Kwargs &) override
    {
        if (text(args, "fault") == "setup") throw std::runtime_error("no room for a stream");
        if (format != "CF32") throw std::runtime_error("the loop only has CF32");
        return reinterpret_cast<SoapySDR::Stream *>(direction == SOAPY_SDR_RX ? &rx : &tx);
    }

    void closeStream(SoapySDR::Stream *) override {}

    size_t getStreamMTU(SoapySDR::Stream *) const override { return size_t(number(args, "block", 4096)); }

    int activateStream(SoapySDR::Stream *stream, int, long long, size_t) override
    {
        if (text(args, "fault") == "activate") return SOAPY_SDR_NOT_SUPPORTED;
        auto &side = *reinterpret_cast<Side *>(stream);
        side = Side{};
        side.isActive = true;
        side.begun = Clock::now();
        return 0;
    }

    int deactivateStream(SoapySDR::Stream *stream, int, long long) override
    {
        reinterpret_cast<Side *>(stream)->isActive = false;
        return 0;
    }

    int readStream(SoapySDR::Stream *, void *const *buffers, size_t most, int &flags, long long &timeNs, long timeoutUs) override
    {
        if (!rx.isActive) return pause(timeoutUs);
        if (text(args, "fault") == "read" && rx.passed > 10000) throw std::runtime_error("the loop has torn");
        if (text(args, "fault") == "silent" && rx.passed > 10000) return pause(timeoutUs);
        auto *samples = static_cast<Sample *>(buffers[0]);
        const std::lock_guard<std::mutex> lock(mutex);
        if (goesAway(rx)) return SOAPY_SDR_STREAM_ERROR;
        if (text(args, "mode") == "echo") return echo(samples, most, timeoutUs);
        const auto passed = std::chrono::duration<double>(Clock::now() - rx.begun).count();
        const auto there = (unsigned long long)(passed * rate);
        const auto room = (unsigned long long)number(args, "buffer", 1e6);
        if (there > rx.position + room)
        {
            return drop(there - rx.position - room / 2, true);
        }
        const size_t block = size_t(number(args, "block", 4096));
        if (there < rx.position + block) return pause(timeoutUs);
        const auto every = (unsigned long long)number(args, "every", 0);
        if (every > 0 && ++rx.reads % every == 0)
        {
            const bool isTold = text(args, "told") != "no";
            const int result = drop((unsigned long long)number(args, "drop", 0), isTold);
            if (isTold) return result;
        }
        size_t count = std::min(most, block);
        if (text(args, "short") != "") count = 1 + rx.position * 7919 % count;
        for (size_t n = 0; n < count; n++) samples[n] = counted(rx.position + n);
        if (text(args, "times") != "no")
        {
            flags |= SOAPY_SDR_HAS_TIME;
            timeNs = (long long)number(args, "origin", 0) + (long long)(double(rx.position) * 1e9 / rate);
            if (text(args, "times") == "back") timeNs = -timeNs;
        }
        rx.position += count;
        rx.passed += count;
        return int(count);
    }

    int writeStream(SoapySDR::Stream *, const void *const *buffers, size_t count, int &flags, long long, long timeoutUs) override
    {
        if (!tx.isActive) return pause(timeoutUs);
        if (text(args, "fault") == "write" && tx.passed > 10000) throw std::runtime_error("the loop has torn");
        if (text(args, "fault") == "deaf" && tx.passed > 10000) return pause(timeoutUs);
        const std::lock_guard<std::mutex> lock(mutex);
        if (goesAway(tx)) return SOAPY_SDR_STREAM_ERROR;
        if (tx.passed == 0) tx.begun = Clock::now();
        const auto passed = std::chrono::duration<double>(Clock::now() - tx.begun).count();
        const auto sent = (unsigned long long)(passed * rate);
        if (sent > tx.passed && tx.passed > 0 && tx.ends == 0)
        {
            // It had nothing to send.
            tx.events++;
            underflows++;
            tx.begun = Clock::now() - std::chrono::nanoseconds((long long)(double(tx.passed) * 1e9 / rate));
        }
        const auto room = (unsigned long long)number(args, "buffer", 65536);
        if (tx.passed >= sent + room) return pause(timeoutUs);
        count = size_t(std::min<unsigned long long>(count, sent + room - tx.passed));
        if (text(args, "short") != "") count = std::min<size_t>(count, 1024 + tx.passed * 7919 % 1000);
        const auto *samples = static_cast<const Sample *>(buffers[0]);
        if (record) std::fwrite(samples, sizeof(Sample), count, record);
        if (text(args, "mode") == "echo") queue.insert(queue.end(), samples, samples + count);
        tx.passed += count;
        if (flags & SOAPY_SDR_END_BURST) tx.ends++;
        return int(count);
    }

    int readStreamStatus(SoapySDR::Stream *, size_t &, int &, long long &, long timeoutUs) override
    {
        if (text(args, "status") == "no") return SOAPY_SDR_NOT_SUPPORTED;
        const std::lock_guard<std::mutex> lock(mutex);
        if (underflows == 0) return pause(timeoutUs);
        underflows--;
        return SOAPY_SDR_UNDERFLOW;
    }

    std::vector<std::string> listAntennas(int, size_t) const override { return {"LOOP", "DUMMY"}; }
    void setAntenna(int, size_t, const std::string &name) override { antenna = name; }
    std::string getAntenna(int, size_t) const override { return antenna; }

    bool hasFrequencyCorrection(int, size_t) const override { return text(args, "ppm") != "no"; }
    void setFrequencyCorrection(int, size_t, double value) override { ppm = value; }
    double getFrequencyCorrection(int, size_t) const override { return ppm; }

    std::vector<std::string> listGains(int, size_t) const override { return {"LNA", "VGA"}; }
    bool hasGainMode(int, size_t) const override { return text(args, "agc") != "no"; }
    void setGainMode(int, size_t, bool automatic) override { isAutomatic = automatic; }
    bool getGainMode(int, size_t) const override { return isAutomatic; }
    void setGain(int, size_t, double value) override { gain = 2 * std::round(value / 2); }
    void setGain(int, size_t, const std::string &, double value) override { gain = value; }
    double getGain(int, size_t) const override { return gain; }
    double getGain(int, size_t, const std::string &) const override { return gain; }
    SoapySDR::Range getGainRange(int, size_t) const override { return {0, 60}; }
    SoapySDR::Range getGainRange(int, size_t, const std::string &) const override { return {0, 30}; }

    void setFrequency(int, size_t, double value, const SoapySDR::Kwargs &) override { frequency = value; }
    double getFrequency(int, size_t) const override { return frequency; }
    SoapySDR::RangeList getFrequencyRange(int, size_t) const override { return {{1e6, 6e9}}; }

    void setSampleRate(int, size_t, double value) override
    {
        if (text(args, "fault") == "rate") throw std::runtime_error("no such rate");
        rate = value * number(args, "rate_error", 1);
    }
    double getSampleRate(int, size_t) const override { return rate; }
    SoapySDR::RangeList getSampleRateRange(int, size_t) const override { return {{1e3, 300e3}, {900e3, 20e6}}; }

    void setBandwidth(int, size_t, double value) override { bandwidth = value; }
    double getBandwidth(int, size_t) const override { return bandwidth; }
    SoapySDR::RangeList getBandwidthRange(int, size_t) const override { return {{200e3, 200e3}, {1e6, 1e6}}; }

    SoapySDR::ArgInfoList getSettingInfo() const override
    {
        SoapySDR::ArgInfo info;
        info.key = "biastee";
        info.value = "false";
        info.type = SoapySDR::ArgInfo::BOOL;
        return {info};
    }
    void writeSetting(const std::string &key, const std::string &value) override
    {
        if (key == "biastee" && value != "true" && value != "false") throw std::runtime_error("biastee is true or false");
    }

private:
    int pause(long timeoutUs)
    {
        if (timeoutUs > 0) std::this_thread::sleep_for(std::chrono::microseconds(std::min(timeoutUs, 10000L)));
        return SOAPY_SDR_TIMEOUT;
    }

    int drop(unsigned long long count, bool isTold)
    {
        rx.position += count;
        rx.dropped += count;
        if (isTold) rx.events++;
        if (isTold) SoapySDR::log(SOAPY_SDR_SSI, "O");
        return SOAPY_SDR_OVERFLOW;
    }

    bool goesAway(const Side &side)
    {
        const auto after = number(args, "gone_after", 0);
        if (isGone || (made == 1 && after > 0 && double(side.passed) >= after))
        {
            if (!isGone) goneUntil = Clock::now() + std::chrono::milliseconds((long long)(1000 * number(args, "gone_s", 1)));
            isGone = true;
            SoapySDR::log(SOAPY_SDR_ERROR, "the loop was unplugged");
        }
        return isGone;
    }

    int echo(Sample *samples, size_t most, long timeoutUs)
    {
        if (queue.empty()) return pause(timeoutUs);
        const size_t count = std::min(most, queue.size());
        std::copy_n(queue.begin(), count, samples);
        queue.erase(queue.begin(), queue.begin() + long(count));
        rx.passed += count;
        return int(count);
    }

    const SoapySDR::Kwargs args;
    double rate, frequency, bandwidth, gain, ppm = 0;
    bool isAutomatic = false, isGone = false;
    std::string antenna = "LOOP";
    Side rx, tx;
    unsigned long long underflows = 0;
    std::deque<Sample> queue;
    std::mutex mutex;
    FILE *record = nullptr;
};

SoapySDR::KwargsList find(const SoapySDR::Kwargs &args)
{
    if (Clock::now() < goneUntil) return {};
    const auto serial = text(args, "serial");
    if (serial != "" && serial != "0001") return {};
    return {{{"driver", "loop"}, {"label", "a loop"}, {"serial", "0001"}}};
}

SoapySDR::Device *make(const SoapySDR::Kwargs &args)
{
    // The library makes a device that it did not find, if the driver is named; and it remembers for a second what it found.
    if (find(args).empty()) throw std::runtime_error("loop device not found");
    return new Loop(args);
}

const SoapySDR::Registry registered("loop", &find, &make, SOAPY_SDR_ABI_VERSION);

} // namespace
