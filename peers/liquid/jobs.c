// The job `channelizer` of `onbeat bench jobs` in liquid-dsp, from file to file.
//
//   jobs list
//   jobs VARIANT JOB FOLDER RESULT CORE,...    one measurement: {"samples": samples read, "seconds": of the work}

#define _GNU_SOURCE
#include <complex.h>
#include <liquid/liquid.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CHANNELS = 16, TAPS_PER_CHANNEL = 12, ROWS = 128 };

static void fail(const char* text, const char* what) {
    fprintf(stderr, "%s: %s\n", what, text);
    exit(1);
}

static FILE* in_folder(const char* folder, const char* name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE* file = fopen(path, "rb");
    if (!file) fail("it cannot be opened", path);
    return file;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

// Its taps are a whole number of rows; onbeat's are one fewer, and the last one is 0.
static firpfbch_crcf channelizer(const char* folder) {
    float taps[CHANNELS * TAPS_PER_CHANNEL + 1] = {0};
    FILE* file = in_folder(folder, "channels.taps");
    int count = 0;
    while (count <= CHANNELS * TAPS_PER_CHANNEL && fscanf(file, "%f", &taps[count]) == 1) count++;
    fclose(file);
    if (count == 0 || count > CHANNELS * TAPS_PER_CHANNEL) fail("unexpected number of taps", "channels.taps");
    return firpfbch_crcf_create(LIQUID_ANALYZER, CHANNELS, TAPS_PER_CHANNEL, taps);
}

static void on_cores(char* list) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (char* core = strtok(list, ","); core; core = strtok(NULL, ",")) CPU_SET(atoi(core), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) perror("cores");
}

static int list(void) {
    printf("{\"peer\": \"liquid\", \"version\": \"%s\", \"variant\": \"default\", \"how\": \"as it comes, in a loop of one thread\", "
           "\"jobs\": [\"channelizer\"], \"cores\": [1]}\n", liquid_libversion());
    return 0;
}

int main(int argc, char** argv) {
    if (argc == 2 && strcmp(argv[1], "list") == 0) return list();
    if (argc != 6) {
        fprintf(stderr, "usage: list | VARIANT JOB FOLDER RESULT CORE,...\n");
        return 2;
    }
    if (strcmp(argv[2], "channelizer") != 0) {
        fprintf(stderr, "it has no job `%s`\n", argv[2]);
        return 2;
    }
    on_cores(argv[5]);
    firpfbch_crcf bank = channelizer(argv[3]);
    FILE* input = in_folder(argv[3], "input");
    static float complex samples[ROWS * CHANNELS], rows[ROWS * CHANNELS];
    unsigned long long total = 0;
    const double begin = now();
    FILE* result = fopen(argv[4], "wb");
    if (!result) fail("it cannot be written", argv[4]);
    for (size_t count; (count = fread(samples, sizeof *samples, ROWS * CHANNELS, input)) > 0;) {
        total += count;
        memset(samples + count, 0, (ROWS * CHANNELS - count) * sizeof *samples);
        const size_t full = (count + CHANNELS - 1) / CHANNELS;
        for (size_t row = 0; row < full; row++)
            firpfbch_crcf_analyzer_execute(bank, samples + row * CHANNELS, rows + row * CHANNELS);
        if (fwrite(rows, sizeof *rows * CHANNELS, full, result) != full) fail("it cannot be written", argv[4]);
    }
    if (fclose(result) != 0) fail("it cannot be written", argv[4]);
    const double seconds = now() - begin;
    printf("{\"samples\": %llu, \"seconds\": %.9f}\n", total, seconds);
    fclose(input);
    firpfbch_crcf_destroy(bank);
    return 0;
}
