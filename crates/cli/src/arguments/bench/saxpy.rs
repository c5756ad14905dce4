//! Arguments of `onbeat bench saxpy`.

use super::{OutputFormat, idle, once};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use onbeat::{Bytes, Idle};
use onbeat_bench::saxpy::{Mode, SaxpyForm, SaxpySettings, Whose};
use onbeat_os::CoreSet;
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
EXAMPLES
  onbeat bench saxpy                                    measure chains of 1 to 6 operators
  onbeat bench saxpy --quantum 4,8,16,32,64KiB          measure several chunk sizes
  onbeat bench saxpy --mode greedy --kernels 3 --in-place
                                                        measure one scheduler and chain length
  onbeat bench saxpy --plot saxpy.svg                   also write a plot
  onbeat bench saxpy --peers=peers                      compare with others (see peers/README.md)";

#[derive(Debug, Args)]
pub struct SaxpyArguments {
    /// Numbers of cores, e.g. 1-2 or 1,2,4
    #[arg(long, value_name = "LIST", default_value = "1-2", allow_hyphen_values = true, value_parser = numbers)]
    cores: NumberList,
    /// Cores to run on [default: the first ones that the process may use]
    #[arg(long, value_name = "LIST", visible_alias = "cpus", allow_hyphen_values = true)]
    on: Option<CoreSet>,
    /// Numbers of saxpy operators in the chain
    #[arg(long, value_name = "LIST", default_value = "1-6", allow_hyphen_values = true, value_parser = numbers)]
    kernels: NumberList,
    /// Chunk sizes, e.g. 4,8,16KiB; a number without a unit has that of the next one
    #[arg(long, value_name = "SIZES", default_value = "16KiB", allow_hyphen_values = true, value_parser = sizes)]
    quantum: NumberList,
    /// Schedulers to measure: pinned splits the chain between the workers and keeps the order, with
    /// replicated each worker has the whole chain
    #[arg(long, value_delimiter = ',', value_name = "NAMES", value_parser = modes())]
    mode: Vec<Mode>,
    /// Measure only in place, where saxpy changes its input chunk [default: in place and out of place]
    #[arg(long)]
    in_place: bool,
    /// Measure only out of place, where saxpy writes a new chunk
    #[arg(long)]
    out_of_place: bool,
    /// In-place saxpy operator to measure: the built-in one, or one as a user would write it
    #[arg(long, value_delimiter = ',', value_name = "NAMES", default_value = "built_in", value_parser = operators())]
    operator: Vec<Whose>,
    /// Numbers of chunks in circulation between cores, for pinned and for plain loops; 0 means one more
    /// than cores
    #[arg(long, value_name = "LIST", default_value = "0,8", allow_hyphen_values = true, value_parser = zero_or_more)]
    buffers: NumberList,
    /// How idle workers wait: park, spin, spin:20us (then park) or early:150us (before a source is due)
    #[arg(long, value_name = "HOW", default_value = "spin", value_parser = idle)]
    idle: Idle,
    /// Duration of one measurement, in seconds; at least 0.2 s for a peer
    #[arg(long, value_name = "S", default_value_t = SaxpySettings::default().seconds, allow_hyphen_values = true)]
    seconds: f64,
    /// Number of measurements of each case, alternating; the result is the median
    #[arg(long, value_name = "N", default_value_t = 15, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Number of repetitions of a measurement that was disturbed; the least disturbed one counts
    #[arg(long, value_name = "N", default_value_t = 3, allow_hyphen_values = true)]
    again: u8,
    /// Compare with other runtimes, alternating with the same chains; DIR is the project's folder `peers`
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = "peers")]
    peers: Option<PathBuf>,
    /// Write a plot of the results to this file
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// Output format on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: OutputFormat,
}

impl SaxpyArguments {
    pub fn settings(&self) -> SaxpySettings {
        let forms = match (self.in_place, self.out_of_place) {
            (true, false) => vec![SaxpyForm::InPlace],
            (false, true) => vec![SaxpyForm::OutOfPlace],
            _ => SaxpyForm::ALL.to_vec(),
        };
        SaxpySettings {
            cores: self.cores.0.clone(),
            on: self.on.as_ref().map_or(Vec::new(), |cores| cores.iter().collect()),
            kernels: self.kernels.0.clone(),
            quanta: self.quantum.0.clone(),
            modes: if self.mode.is_empty() { Mode::ALL.to_vec() } else { once(&self.mode) },
            forms,
            operators: once(&self.operator),
            buffers: self.buffers.0.clone(),
            idle: self.idle,
            seconds: self.seconds,
            rounds: usize::from(self.rounds),
            again: usize::from(self.again),
            peers: self.peers.clone(),
        }
    }
}

/// Numbers without duplicates, in command-line order.
#[derive(Debug, Clone)]
pub(super) struct NumberList(pub(super) Vec<usize>);

/// Parses a list of numbers from 1, e.g. "1-3,8".
pub(super) fn numbers(text: &str) -> Result<NumberList, String> {
    let numbers = zero_or_more(text)?;
    if numbers.0.contains(&0) {
        return Err("0 is too small: use numbers from 1, e.g. 1-4 or 1,2,8".to_owned());
    }
    Ok(numbers)
}

fn zero_or_more(text: &str) -> Result<NumberList, String> {
    const MOST: usize = 100_000;
    let wrong = |part: &str| format!("`{part}` is not a number or range: write e.g. 1-4 or 1,2,8");
    let mut all = Vec::new();
    for part in text.split(',') {
        let number = |text: &str| text.trim().parse::<usize>().map_err(|_| wrong(part));
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if first > last || last > MOST {
            return Err(wrong(part));
        }
        all.extend(first..=last);
    }
    Ok(NumberList(once(&all)))
}

/// Parses sizes, e.g. "4,8,16KiB": a number without a unit has the unit of the next number that has one.
fn sizes(text: &str) -> Result<NumberList, String> {
    let mut all = Vec::new();
    let mut unit = "";
    for part in text.split(',').rev() {
        let part = part.trim();
        let digits = part.trim_end_matches(|c: char| c.is_alphabetic() || c == ' ');
        if digits.len() < part.len() {
            unit = part[digits.len()..].trim();
        }
        let bytes: Bytes = format!("{digits}{unit}")
            .parse()
            .map_err(|_| format!("`{part}` is not a size: write e.g. 16KiB, 1MiB or 4,8,16KiB"))?;
        all.push(bytes.as_usize().ok_or_else(|| format!("`{part}` is not a whole number of bytes"))?);
    }
    all.reverse();
    Ok(NumberList(once(&all)))
}

fn modes() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(Mode::ALL.iter().map(|mode| mode.name()))
        .try_map(|name| Mode::from_name(&name).ok_or("unknown mode"))
}

fn operators() -> impl TypedValueParser<Value = Whose> {
    PossibleValuesParser::new(Whose::ALL.iter().map(|whose| whose.name()))
        .try_map(|name| Whose::from_name(&name).ok_or("unknown operator"))
}

#[cfg(test)]
mod tests {
    use super::{numbers, sizes};

    #[test]
    fn lists_of_numbers_and_sizes() {
        for (text, all) in [("1", &[1][..]), ("1-3", &[1, 2, 3]), ("2,1,2", &[2, 1]), ("1-2,6", &[1, 2, 6])] {
            assert_eq!(numbers(text).expect(text).0, all, "{text}");
        }
        for text in ["", "0", "x", "3-1", "1-", "-1", "1,,2", "1-9999999"] {
            assert!(numbers(text).is_err(), "{text}");
        }
        for (text, all) in [
            ("16KiB", &[16 << 10][..]),
            ("4,8,16KiB", &[4 << 10, 8 << 10, 16 << 10]),
            ("4KiB,1MiB", &[4 << 10, 1 << 20]),
            ("1000", &[1000]),
        ] {
            assert_eq!(sizes(text).expect(text).0, all, "{text}");
        }
        for text in ["", "KiB", "16KB4", "-4KiB", "4 parsecs"] {
            assert!(sizes(text).is_err(), "{text}");
        }
    }
}
