#!/bin/sh
# The job `adsb` of `onbeat bench jobs` in dump1090-mutability.
#
#   sh jobs.sh list
#   sh jobs.sh VARIANT adsb FOLDER RESULT CORE,...    {"samples": of the input, "seconds": N}
#
# Its demodulator knows one rate, 2.4 MS/s, so it reads `input_2400k`: the same signal, resampled.
set -u

if [ "${1:-}" = list ]; then
    version=$(dpkg-query -W -f '${Version}' dump1090-mutability 2>/dev/null | sed 's/~.*//')
    say() {
        printf '{"peer": "dump1090", "version": "%s", "variant": "%s", "how": "%s", "jobs": ["adsb"], "cores": [%s]}\n' \
            "${version:-unknown}" "$1" "$2" "$3"
    }
    say default "the whole program, from its start to its end" "1, 2"
    say demodulator "CPU time of its demodulator alone, from its --stats, in whole milliseconds" 1
    exit 0
fi
[ $# -eq 5 ] || { echo "usage: list | VARIANT adsb FOLDER RESULT CORE,..." >&2; exit 2; }
variant=$1 folder=$3 result=$4 on=$5

begin=$(date +%s%N)
taskset -c "$on" dump1090-mutability --ifile "$folder/input_2400k" --raw --stats > "$result" 2> "$result.log" ||
    { tail -n 1 "$result.log" >&2; exit 1; }
end=$(date +%s%N)
samples=$(sed -n 's/^ *\([0-9]*\) samples processed.*/\1/p' "$result")
demodulator_ms=$(sed -n 's/^ *\([0-9]*\) ms for demodulation.*/\1/p' "$result")
case $variant in
demodulator) ns=$((${demodulator_ms:-0} * 1000000)) ;;
*) ns=$((end - begin)) ;;
esac
# Counted at 2.4 MS/s; the input has 5 for 6 of them.
printf '{"samples": %d, "seconds": %d.%09d}\n' $((${samples:-0} * 5 / 6)) $((ns / 1000000000)) $((ns % 1000000000))
