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
known="gnuradio futuresdr liquid dump1090 sox opencv"

program() { echo "$here/$1/target/release/jobs"; }

is_there() {
    case $1 in
    dump1090) command -v dump1090-mutability > /dev/null ;;
    sox) command -v sox > /dev/null ;;
    opencv) [ -x "$here/opencv/venv/bin/python" ] ;;
    *) [ -x "$(program "$1")" ] ;;
    esac
}

how() {
    case $1 in
    gnuradio) echo "apt-get install --no-install-recommends g++ pkg-config gnuradio-dev; sh peers/jobs.sh build gnuradio" ;;
    futuresdr) echo "sh peers/jobs.sh build futuresdr; it needs cargo" ;;
    liquid) echo "apt-get install --no-install-recommends gcc libc6-dev libliquid-dev; sh peers/jobs.sh build liquid" ;;
    dump1090) echo "apt-get install --no-install-recommends dump1090-mutability" ;;
    sox) echo "apt-get install --no-install-recommends sox" ;;
    opencv) echo "sh peers/jobs.sh build opencv; it needs Python with pip and venv" ;;
    esac
}

jobs() {
    case $1 in
    gnuradio) echo '"fm", "spectrum", "channelizer"' ;;
    futuresdr) echo '"fm", "spectrum"' ;;
    liquid) echo '"channelizer"' ;;
    dump1090) echo '"adsb"' ;;
    sox) echo '"audio"' ;;
    opencv) echo '"image"' ;;
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
    # It uses an unstable feature.
    futuresdr)
        (cd "$here/futuresdr" && RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zcrate-attr=feature(float_algebraic)" cargo build --release --quiet --bin jobs)
        ;;
    liquid)
        mkdir -p "$here/liquid/target/release" &&
            cc -std=gnu11 -O3 -o "$(program liquid)" "$here/liquid/jobs.c" -lliquid -lm
        ;;
    opencv)
        python3 -m venv "$here/opencv/venv" && "$here/opencv/venv/bin/pip" install --quiet opencv-python-headless
        ;;
    dump1090 | sox) is_there "$1" ;;
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
    opencv) exec "$here/opencv/venv/bin/python" "$here/opencv/jobs.py" "$@" ;;
    dump1090 | sox) exec sh "$here/$peer/jobs.sh" "$@" ;;
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
