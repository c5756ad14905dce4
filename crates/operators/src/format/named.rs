//! What the name of a recording says about it, as recorders of radio signals write it.
//!
//! | name | of | says |
//! |---|---|---|
//! | `g001_433.92M_1024k.cu8` | rtl_433 | centre 433.92 MHz, 1.024 MS/s, `cu8` |
//! | `gqrx_20200101_120000_100000000_1800000_fc.raw` | gqrx | centre 100 MHz, 1.8 MS/s, `cf32_le` |
//! | `x_fs2.4M.cs16`, `x_2.4Msps.cfile` | people | 2.4 MS/s, `ci16_le`, `cf32_le` |

use super::SampleFormat;
use std::path::Path;

/// What a name says; `None` for what it does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct NamedRecording {
    pub format: Option<SampleFormat>,
    pub rate_hz: Option<f64>,
    pub center_hz: Option<f64>,
}

impl NamedRecording {
    /// Reads the name of a file.
    pub fn of(path: &Path) -> Self {
        let lossy = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let (stem, extension) = (lossy(path.file_stem()), lossy(path.extension()).to_lowercase());
        let words: Vec<&str> = stem.split(['_', '-', ' ']).filter(|word| !word.is_empty()).collect();
        if let ["gqrx", _, _, center, rate, ending] = words[..] {
            let format = (ending == "fc").then_some(SampleFormat::Cf32Le);
            return NamedRecording { format, rate_hz: positive(rate, 1.0), center_hz: positive(center, 1.0) };
        }
        let mut named = NamedRecording { format: format(&extension), ..NamedRecording::default() };
        for word in words {
            let lower = word.to_lowercase();
            let prefixed = ["fs", "sr"].iter().find_map(|prefix| lower.strip_prefix(prefix));
            let suffixed = ["sps", "s/s"].iter().find_map(|suffix| lower.strip_suffix(suffix));
            if let Some(rate_hz) = prefixed.or(suffixed).and_then(scaled) {
                named.rate_hz = Some(rate_hz);
            } else if let Some(number) = word.strip_suffix('M') {
                named.center_hz = positive(number, 1e6).or(named.center_hz);
            } else if let Some(number) = word.strip_suffix('k') {
                named.rate_hz = positive(number, 1e3).or(named.rate_hz);
            }
        }
        named
    }

    /// The lines that a pipeline would have: `format = "cu8"`, `sample_rate = 1024000`.
    pub fn lines(&self, has_format: bool, has_rate: bool) -> Vec<String> {
        let format =
            self.format.filter(|_| has_format).map(|format| format!("format = \"{}\"", format.name()));
        let rate = self.rate_hz.filter(|_| has_rate).map(|rate_hz| format!("sample_rate = {rate_hz}"));
        format.into_iter().chain(rate).collect()
    }

    /// What given values contradict.
    pub fn contradicts(&self, format: SampleFormat, rate_hz: f64) -> Vec<String> {
        let other = self.format.filter(|named| *named != format);
        let format = other.map(|named| {
            format!("`format` is {}, and the name of the file says {}", format.name(), named.name())
        });
        let other = self.rate_hz.filter(|named_hz| (named_hz / rate_hz - 1.0).abs() > 1e-6);
        let rate = other.map(|named_hz| {
            format!("`sample_rate` is {rate_hz} Hz, and the name of the file says {named_hz} Hz")
        });
        format.into_iter().chain(rate).collect()
    }
}

fn format(extension: &str) -> Option<SampleFormat> {
    Some(match extension {
        "cu8" | "complex16u" => SampleFormat::Cu8,
        "cs8" | "ci8" | "sc8" | "complex16s" => SampleFormat::Ci8,
        "cu16" => SampleFormat::Cu16Le,
        "cs16" | "ci16" | "sc16" => SampleFormat::Ci16Le,
        "cs32" | "ci32" | "sc32" => SampleFormat::Ci32Le,
        "cf32" | "fc32" | "cfile" | "complex" => SampleFormat::Cf32Le,
        "cf64" | "fc64" => SampleFormat::Cf64Le,
        _ => return None,
    })
}

/// A number such as `2.4m`, `1024k`, `250e3`.
fn scaled(text: &str) -> Option<f64> {
    let (number, factor) = match text.as_bytes().last()? {
        b'k' => (&text[..text.len() - 1], 1e3),
        b'm' => (&text[..text.len() - 1], 1e6),
        b'g' => (&text[..text.len() - 1], 1e9),
        _ => (text, 1.0),
    };
    positive(number, factor)
}

fn positive(text: &str, factor: f64) -> Option<f64> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || b".e".contains(&byte));
    let number: f64 = text.parse().ok().filter(|_| is_number)?;
    // Rates in names are whole numbers of hertz.
    Some((number * factor).round()).filter(|hz| *hz > 0.0 && hz.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_recorders_are_understood() {
        let (cu8, ci16, cf32) = (SampleFormat::Cu8, SampleFormat::Ci16Le, SampleFormat::Cf32Le);
        for (name, format, rate_hz, center_hz) in [
            ("g001_433.92M_1024k.cu8", Some(cu8), Some(1.024e6), Some(433.92e6)),
            ("a/b/g012_868M_250k.cs16", Some(ci16), Some(250e3), Some(868e6)),
            ("gqrx_20200101_120000_100000000_1800000_fc.raw", Some(cf32), Some(1.8e6), Some(100e6)),
            ("gqrx_20200101_120000_100000000_1800000_sc.raw", None, Some(1.8e6), Some(100e6)),
            ("x_fs2.4M.cs16", Some(ci16), Some(2.4e6), None),
            ("drone-2.4Msps.cfile", Some(cf32), Some(2.4e6), None),
            ("x_sr250e3.CF32", Some(cf32), Some(250e3), None),
            ("take_2.iq", None, None, None),
            ("M_k.bin", None, None, None),
            ("12_infk_nanM_.3.k.cu8", Some(cu8), None, None),
            ("fs.cu8", Some(cu8), None, None),
        ] {
            assert_eq!(
                NamedRecording::of(Path::new(name)),
                NamedRecording { format, rate_hz, center_hz },
                "{name}"
            );
        }
    }
}
