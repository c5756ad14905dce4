//! Command line and output of the programs in Rust.

use std::time::{Duration, Instant};

/// A configuration of a runtime.
pub struct Variant {
    pub name: &'static str,
    pub how: &'static str,
    pub in_place: bool,
    /// Bytes per call of an operator.
    pub quantum: usize,
    /// Supported numbers of cores.
    pub cores: &'static [usize],
}

/// A measurement to make.
pub struct Request {
    pub variant: usize,
    pub cores: usize,
    pub kernels: usize,
    pub seconds: f64,
    /// The cores to use; at least `cores` of them.
    pub on: Vec<usize>,
}

/// Lists the variants, or measures one.
///
/// `run` returns only after an error, because [`Count`] ends the process.
pub fn program(peer: &str, version: &str, variants: &[Variant], run: fn(&Request, Count) -> String) -> ! {
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
    let Some(request) = request(&words, variants) else {
        eprintln!("usage: list | VARIANT CORES KERNELS SECONDS CORE,...");
        std::process::exit(2);
    };
    let samples = Count { seconds: request.seconds, begin: None, is_warm: false, samples: 0, calls: 0 };
    eprintln!("{}", run(&request, samples));
    std::process::exit(1);
}

fn request(words: &[&str], variants: &[Variant]) -> Option<Request> {
    let [name, cores, kernels, seconds, on] = words else { return None };
    let request = Request {
        variant: variants.iter().position(|variant| variant.name == *name)?,
        cores: cores.parse().ok()?,
        kernels: kernels.parse().ok()?,
        seconds: seconds.parse().ok()?,
        on: on.split(',').map(str::parse).collect::<Result<_, _>>().ok()?,
    };
    let is_possible = variants[request.variant].cores.contains(&request.cores);
    (is_possible && request.on.len() >= request.cores && request.kernels > 0 && request.seconds > 0.0).then_some(request)
}

/// Counter in the sink of each program: counts samples; at the end it prints the rate and ends the process.
#[derive(Debug)]
pub struct Count {
    seconds: f64,
    begin: Option<Instant>,
    is_warm: bool,
    samples: u64,
    calls: u64,
}

impl Count {
    /// Adds received samples.
    #[inline]
    pub fn add(&mut self, samples: usize) {
        self.samples += samples as u64;
        self.calls += 1;
        // To read the clock costs 20 ns, so it is not read each time.
        if self.calls & 63 == 0 {
            self.look();
        }
    }

    #[inline(never)]
    fn look(&mut self) {
        // The first tenth of the time is warm-up.
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
