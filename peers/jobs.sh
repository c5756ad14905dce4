#!/bin/sh
# Whole jobs in other programs, for `onbeat bench jobs --peers`.
#
#   sh jobs.sh build [PEER...]                                 compile these, or all available ones
#   sh jobs.sh list                                            a line of JSON per peer and setting
#   sh jobs.sh run PEER VARIANT JOB FOLDER RESULT CORE,...     one measurement: {"samples": N, "seconds": S}
#
# FOLDER has the file `input`, and further files that a job needs. RESULT is the file to write. `onbeat bench
# jobs` makes the folder, and measures the quality of the result. N counts samples of the input; S is the time
# of the processing, without the start of the program.
set -u
here=$(cd "$(dirname "$0")" && pwd)
known="gnuradio dump1090"

program() { echo "$here/$1/target/release/jobs"; }

is_there() {
    case $1 in
    dump1090) command -v dump1090-mutability > /dev/null ;;
    *) [ -x "$(program "$1")" ] ;;
    esac
}

how() {
    case $1 in
    gnuradio) echo "apt-get install --no-install-recommends g++ pkg-config gnuradio-dev; sh peers/jobs.sh build gnuradio" ;;
    dump1090) echo "apt-get install --no-install-recommends dump1090-mutability" ;;
    esac
}

jobs() {
    case $1 in
    gnuradio) echo '"fm", "spectrum"' ;;
    dump1090) echo '"adsb"' ;;
    esac
}

build() {
    case $1 in
    # No warnings from headers of the system.
    gnuradio)
        libraries="gnuradio-runtime gnuradio-blocks gnuradio-analog gnuradio-filter gnuradio-fft"
        # shellcheck disable=SC2046,SC2086 # several words each
        mkdir -p "$here/gnuradio/target/release" &&
            c++ -std=c++17 -O3 -o "$(program gnuradio)" "$here/gnuradio/jobs.cpp" \
                $(pkg-config --cflags $libraries | sed 's/-I/-isystem /g') $(pkg-config --libs $libraries) -lfmt -lspdlog -lpthread
        ;;
    dump1090) is_there dump1090 ;;
    *)
        echo "there is no peer $1: there are $known" >&2
        return 1
        ;;
    esac
}

run_program() {
    peer=$1
    shift
    case $peer in
    dump1090) exec sh "$here/dump1090/jobs.sh" "$@" ;;
    *) exec "$(program "$peer")" "$@" ;;
    esac
}

list() {
    for peer in $known; do
        if is_there "$peer"; then
            (run_program "$peer" list)
        else
            printf '{"peer": "%s", "missing": "it is not installed: %s", "jobs": [%s]}\n' "$peer" "$(how "$peer")" "$(jobs "$peer")"
        fi
    done
}

command=${1:-}
[ $# -gt 0 ] && shift
case $command in
build)
    failed=0
    for peer in ${*:-$known}; do
        build "$peer" || { echo "$peer: not available: $(how "$peer")" >&2; failed=1; }
    done
    exit $failed
    ;;
list) list ;;
run)
    [ $# -eq 6 ] || { echo "run PEER VARIANT JOB FOLDER RESULT CORE,..." >&2; exit 2; }
    run_program "$@"
    ;;
*)
    sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
