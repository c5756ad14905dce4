#!/bin/sh
# The job `audio` of `onbeat bench jobs` in sox.
#
#   sh jobs.sh list
#   sh jobs.sh VARIANT audio FOLDER RESULT CORE,...    {"samples": of the input, "seconds": N}
#
# The seconds are those of the whole program, from its start to its end.
set -u

if [ "${1:-}" = list ]; then
    version=$(sox --version | sed 's/.*v//')
    say() {
        printf '{"peer": "sox", "version": "%s", "variant": "%s", "how": "%s", "jobs": ["audio"], "cores": [%s]}\n' \
            "${version:-unknown}" "$1" "$2" "$3"
    }
    say default "as it comes: one thread, a resampler with 125 dB of attenuation" 1
    say best "rate -m, the attenuation of onbeat; buffers of 128 KiB; on two cores, --multi-threaded" "1, 2"
    exit 0
fi
[ $# -eq 5 ] || { echo "usage: list | VARIANT audio FOLDER RESULT CORE,..." >&2; exit 2; }
variant=$1 job=$2 folder=$3 result=$4 on=$5
[ "$job" = audio ] || { echo "it has no job \`$job\`" >&2; exit 2; }

quality='' options=''
if [ "$variant" = best ]; then
    quality=-m options="--buffer 131072"
    case $on in *,*) options="$options --multi-threaded" ;; esac
fi
# The bands of the pipeline.
bands="bass 3 100 0.7q equalizer 250 1q -2 equalizer 1000 1.4q 2 equalizer 3500 2q -3 treble 2 8000 0.7q"

begin=$(date +%s%N)
# shellcheck disable=SC2086 # several words each
taskset -c "$on" sox $options -t f32 -r 48000 -c 2 "$folder/input" -t f32 -r 44100 "$result" $bands rate $quality ||
    exit 1
end=$(date +%s%N)
ns=$((end - begin))
# A sample of both channels has 8 bytes. 147 of them come out for 160.
samples=$(($(stat -c %s "$result") / 8 * 160 / 147))
printf '{"samples": %d, "seconds": %d.%09d}\n' "$samples" $((ns / 1000000000)) $((ns % 1000000000))
