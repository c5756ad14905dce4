#![allow(clippy::disallowed_macros, missing_docs, reason = "x")]
use onbeat_operators::mode_s::Search;
use std::collections::*;
fn main() {
    let b = std::fs::read("/work/shared/data/modes1.bin").unwrap();
    let m: Vec<f32> = b
        .chunks(2)
        .map(|p| {
            let (i, q) = (f32::from(p[0]) - 127.5, f32::from(p[1]) - 127.5);
            (i * i + q * q).sqrt() / 128.0
        })
        .collect();
    let known: HashSet<String> = std::fs::read_to_string("/work/shared/data/modes1.frames")
        .unwrap()
        .lines()
        .map(|l| l.split(' ').next().unwrap().to_string())
        .collect();
    let mut out = vec![];
    let n: usize = std::env::args().nth(1).map_or(1, |x| x.parse().unwrap());
    let t = std::time::Instant::now();
    let mut s = Search::new(120_000_000);
    for _ in 0..n {
        let mut r = &m[..];
        while !r.is_empty() {
            let k = s.take(r, |x| x);
            r = &r[k..];
            while let Some(f) = s.next() {
                out.push(f);
            }
        }
    }
    s.finish();
    while let Some(f) = s.next() {
        out.push(f);
    }
    let e = t.elapsed().as_secs_f64();
    println!("{} frames, {:.1} x real time", out.len(), n as f64 * m.len() as f64 / 2e6 / e);
    let d: HashSet<String> = out.iter().map(|f| f.hex()).collect();
    let mut by = BTreeMap::new();
    for f in out.iter().map(|f| (f.downlink_format(), f.hex(), f.address())).collect::<BTreeSet<_>>() {
        *by.entry((f.0, f.2)).or_insert(0) += 1;
    }
    println!("{by:x?}");
    let k1117: Vec<_> = known
        .iter()
        .filter(|h| {
            let d = u8::from_str_radix(&h[..2], 16).unwrap() >> 3;
            d == 11 || d == 17
        })
        .collect();
    println!(
        "of 11/17: {} of {}; all {} of {}",
        k1117.iter().filter(|h| d.contains(**h)).count(),
        k1117.len(),
        known.iter().filter(|h| d.contains(*h)).count(),
        known.len()
    );
    for h in &k1117 {
        if !d.contains(*h) {
            println!("missed {h}");
        }
    }
    for f in out.iter().take(5) {
        println!("{:?} {}", f.time_s, f.hex());
    }
}
