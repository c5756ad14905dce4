#!/bin/sh
# The saxpy chain in other runtimes, for `onbeat bench saxpy --peers`.
#
#   sh saxpy.sh build [PEER...]                                  compile these, or all available ones
#   sh saxpy.sh list                                             a line of JSON per peer and setting
#   sh saxpy.sh run PEER VARIANT CORES KERNELS SECONDS CORE,...  one measurement: {"rate": samples per second}
#   sh saxpy.sh all [SECONDS]                                    each case once, a line of JSON per case
set -u
here=$(cd "$(dirname "$0")" && pwd)
known="qsdr futuresdr gnuradio tbb"

program() { echo "$here/$1/target/release/saxpy"; }

how() {
    case $1 in
    qsdr) echo "sh peers/saxpy.sh build qsdr; it needs cargo" ;;
    futuresdr) echo "sh peers/saxpy.sh build futuresdr; it needs cargo" ;;
    gnuradio) echo "apt-get install --no-install-recommends g++ gnuradio-dev; sh peers/saxpy.sh build gnuradio" ;;
    tbb) echo "apt-get install --no-install-recommends g++ libtbb-dev; sh peers/saxpy.sh build tbb" ;;
    esac
}

# Links the kernel that all sides share, which is in Rust.
compile_cpp() {
    peer=$1
    shift
    (cd "$here/kernel" && cargo build --release --quiet) && mkdir -p "$here/$peer/target/release" &&
        c++ -std=c++17 -O3 -o "$(program "$peer")" "$here/$peer/saxpy.cpp" "$here/kernel/target/release/libsaxpy_kernel.a" "$@" -lpthread -ldl
}

build() {
    case $1 in
    qsdr) (cd "$here/qsdr" && cargo build --release --quiet) ;;
    # It uses an unstable feature.
    futuresdr)
        (cd "$here/futuresdr" && RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zcrate-attr=feature(float_algebraic)" cargo build --release --quiet --bin saxpy)
        ;;
    # No warnings from headers of the system.
    gnuradio)
        # shellcheck disable=SC2046 # several words each
        compile_cpp gnuradio $(pkg-config --cflags gnuradio-runtime | sed 's/-I/-isystem /g') $(pkg-config --libs gnuradio-runtime) -lfmt -lspdlog
        ;;
    tbb) compile_cpp tbb -ltbb ;;
    *)
        echo "there is no peer $1: there are $known" >&2
        return 1
        ;;
    esac
}

list() {
    for peer in $known; do
        if [ -x "$(program "$peer")" ]; then
            "$(program "$peer")" list
        else
            printf '{"peer": "%s", "missing": "it is not built: %s"}\n' "$peer" "$(how "$peer")"
        fi
    done
    echo '{"peer": "gnuradio4", "missing": "it is in no registry: not among Debian packages, crates or Python packages"}'
}

# Each case once, on the first cores.
all() {
    seconds=${1:-0.2}
    list | while read -r line; do
        peer=$(echo "$line" | sed -n 's/.*"peer": "\([^"]*\)".*/\1/p')
        variant=$(echo "$line" | sed -n 's/.*"variant": "\([^"]*\)".*/\1/p')
        [ -n "$variant" ] || continue
        for cores in $(echo "$line" | sed -n 's/.*"cores": \[\([^]]*\)\].*/\1/p' | tr -d ,); do
            on=$(seq -s , 0 $((cores - 1)))
            for kernels in 1 2 3 4 5 6; do
                [ "$kernels" -ge "$cores" ] || continue
                answer=$("$(program "$peer")" "$variant" "$cores" "$kernels" "$seconds" "$on" 2>/dev/null | tail -n 1)
                rate=$(echo "$answer" | sed -n 's/.*"rate": *\([0-9.e+]*\).*/\1/p')
                printf '{"peer": "%s", "variant": "%s", "cores": %s, "kernels": %s, "rate": %s}\n' \
                    "$peer" "$variant" "$cores" "$kernels" "${rate:-null}"
            done
        done
    done
}

command=${1:-}
[ $# -gt 0 ] && shift
case $command in
build)
    failed=0
    for peer in ${*:-$known}; do
        build "$peer" || { echo "$peer: not built: $(how "$peer")" >&2; failed=1; }
    done
    exit $failed
    ;;
list) list ;;
run)
    [ $# -eq 6 ] || { echo "run PEER VARIANT CORES KERNELS SECONDS CORE,..." >&2; exit 2; }
    peer=$1
    shift
    exec "$(program "$peer")" "$@"
    ;;
all) all "$@" ;;
*)
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
