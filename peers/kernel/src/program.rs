//! What the programs in Rust share.

use std::time::{Duration, Instant};

/// One way to set a runtime up.
pub struct Variant {
    pub name: &'static str,
    pub how: &'static str,
    pub in_place: bool,
    /// Bytes that an operator gets at a time.
    pub quantum: usize,
    /// Numbers of cores that it can have.
    pub cores: &'static [usize],
}

/// One measurement that is wanted.
pub struct Asked {
    pub variant: usize,
    pub cores: usize,
    pub kernels: usize,
    pub seconds: f64,
    /// Which cores, as many as there are to be.
    pub on: Vec<usize>,
}

/// Lists the variants, or has one measured: `run` does not come back unless something is wrong, as [`Count`] ends the process.
pub fn program(peer: &str, version: &str, variants: &[Variant], run: fn(&Asked, Count) -> String) -> ! {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if words == ["list"] {
        for Variant { name, how, in_place, quantum, cores } in variants {
            println!(
                "{{\"peer\": \"{peer}\", \"version\": \"{version}\", \"variant\": \"{name}\", \"how\": \"{how}\", \
                 \"in_place\": {in_place}, \"quantum\": {quantum}, \"cores\": {cores:?}}}"
            );
        }
        std::process::exit(0);
    }
    let Some(asked) = asked(&words, variants) else {
        eprintln!("usage: list | VARIANT CORES KERNELS SECONDS CORE,...");
        std::process::exit(2);
    };
    let samples = Count { seconds: asked.seconds, begin: None, is_warm: false, samples: 0, calls: 0 };
    eprintln!("{}", run(&asked, samples));
    std::process::exit(1);
}

fn asked(words: &[&str], variants: &[Variant]) -> Option<Asked> {
    let [name, cores, kernels, seconds, on] = words else { return None };
    let asked = Asked {
        variant: variants.iter().position(|variant| variant.name == *name)?,
        cores: cores.parse().ok()?,
        kernels: kernels.parse().ok()?,
        seconds: seconds.parse().ok()?,
        on: on.split(',').map(str::parse).collect::<Result<_, _>>().ok()?,
    };
    let is_possible = variants[asked.variant].cores.contains(&asked.cores);
    (is_possible && asked.on.len() >= asked.cores && asked.kernels > 0 && asked.seconds > 0.0).then_some(asked)
}

/// What the sink of each program does: counts, and at the end prints the rate and ends the process.
#[derive(Debug)]
pub struct Count {
    seconds: f64,
    begin: Option<Instant>,
    is_warm: bool,
    samples: u64,
    calls: u64,
}

impl Count {
    /// So many samples came.
    #[inline]
    pub fn add(&mut self, samples: usize) {
        self.samples += samples as u64;
        self.calls += 1;
        // A look at the clock costs 20 ns: not each time.
        if self.calls & 63 == 0 {
            self.look();
        }
    }

    #[inline(never)]
    fn look(&mut self) {
        // The first tenth of the time is for getting warm.
        let (warm, all) = (Duration::from_secs_f64(self.seconds / 10.0), Duration::from_secs_f64(self.seconds));
        let now = Instant::now();
        let Some(begin) = self.begin else {
            self.begin = Some(now);
            return;
        };
        let passed = now - begin;
        if !self.is_warm && passed >= warm {
            (self.is_warm, self.begin, self.samples) = (true, Some(now), 0);
        } else if self.is_warm && passed >= all {
            println!("{{\"rate\": {}}}", self.samples as f64 / passed.as_secs_f64());
            std::process::exit(0);
        }
    }
}
