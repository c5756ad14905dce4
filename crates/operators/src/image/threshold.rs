//! Makes bytes black or white.

use crate::check;
use crate::vectors::Vectors;
use onbeat_runtime::{Change, Error, Map, Value, tried};
use pulp::{Simd, WithSimd};

/// Sets bytes above a level to 255 and all others to 0. Chunks of any shape are changed in place.
#[derive(Debug, Clone)]
pub struct Threshold {
    vectors: Vectors,
    level: u8,
}

impl Threshold {
    /// Creates the map with the highest byte that becomes 0.
    ///
    /// # Errors
    /// When `level` is not from 0 to 255.
    pub fn new(level: i64) -> Result<Self, Error> {
        check::within("level", level as f64, 0.0, 255.0, "samples are bytes")?;
        Ok(Threshold { vectors: Vectors::new(), level: level as u8 })
    }
}

/// The loop, compiled for the processor's vectors.
struct ThresholdLoop<'t> {
    level: u8,
    samples: &'t mut [u8],
}

impl WithSimd for ThresholdLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        self.samples.iter_mut().for_each(|x| *x = if *x > self.level { 255 } else { 0 });
    }
}

impl Map for Threshold {
    type Sample = u8;

    fn map(&mut self, samples: &mut [u8]) {
        self.vectors.run(ThresholdLoop { level: self.level, samples });
    }

    fn replica(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn settable(&self) -> &'static [&'static str] {
        &["level"]
    }

    fn change(&self, name: &str, value: &Value) -> Result<Change<Self>, Error> {
        let level = value.read(name)?;
        tried(self, move |it| {
            it.level = Threshold::new(level)?.level;
            Ok(())
        })
    }
}
