//! Writes the array of the frames example: `cargo run -p onbeat-operators --example make_frames --
//! examples/frames.npy`.
#![forbid(unsafe_code)]

use std::path::PathBuf;

const FRAMES: usize = 24;
const ROWS: usize = 32;
const COLUMNS: usize = 48;

/// Height of the water, from −1 to 1: two drops have fallen, and their rings spread once over all frames.
fn height(frame: usize, row: usize, column: usize) -> f64 {
    let turn = frame as f64 / FRAMES as f64;
    let ring = |y: f64, x: f64| {
        let distance = (row as f64 - y).hypot(column as f64 - x);
        ((distance / 6.0 - turn) * std::f64::consts::TAU).sin() / (1.0 + distance / 12.0)
    };
    (ring(10.0, 14.0) + ring(22.0, 36.0)) / 2.0
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = PathBuf::from(std::env::args_os().nth(1).ok_or("which file is it to be?")?);
    let header = format!(
        "{:117}\n",
        format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({FRAMES}, {ROWS}, {COLUMNS}), }}")
    );
    let mut bytes = b"\x93NUMPY\x01\0".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    for frame in 0..FRAMES {
        for row in 0..ROWS {
            bytes.extend(
                (0..COLUMNS).map(|column| (height(frame, row, column) * 127.0 + 128.0).round() as u8),
            );
        }
    }
    Ok(std::fs::write(path, bytes)?)
}
