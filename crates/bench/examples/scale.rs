//! The table of docs/book/src/scale.md: a chain of saxpy on 1 to 128 cores, by the model.
//!
//! `cargo run --release -p onbeat-bench --example scale -- WORK_NS HOP_NS HAND_OVER_NS TURN_NS SAMPLES`
#![allow(clippy::disallowed_macros, reason = "an example prints")]

use onbeat_bench::model::{CoreTimes, Scaled, scaled};

fn main() -> Result<(), String> {
    let numbers: Result<Vec<f64>, _> = std::env::args().skip(1).map(|text| text.parse()).collect();
    let [work_ns, hop_ns, hand_over_ns, turn_ns, samples] = numbers.map_err(|error| error.to_string())?[..]
    else {
        return Err("give WORK_NS HOP_NS HAND_OVER_NS TURN_NS SAMPLES".to_owned());
    };
    let core = CoreTimes { work_ns, hop_ns, hand_over_ns, turn_ns };
    println!("| N | M | fair | static | greedy | pinned | replicated, in order | replicated |");
    println!("|---|---|---|---|---|---|---|---|");
    for cores in [1, 2, 4, 8, 16, 32, 64, 128] {
        for kernels in [cores, 3 * cores] {
            let Scaled { fair, statically, greedy, pinned, in_order, ranged } = scaled(&core, cores, kernels);
            let rates = [fair, statically, greedy, pinned, in_order, ranged];
            let cells: Vec<String> =
                rates.iter().map(|rate| format!("{:.3}", rate * samples / 1e9)).collect();
            println!("| {cores} | {kernels} | {} |", cells.join(" | "));
        }
    }
    Ok(())
}
