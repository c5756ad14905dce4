//! Scale and offset.

mod kernel;

pub use kernel::Affine;

use onbeat_runtime::{Change, Error, Map, Value, tried};

use crate::check;

#[doc = include_str!("../../about/saxpy.md")]
#[derive(Debug, Clone)]
pub struct Saxpy {
    affine: Affine,
}

impl Saxpy {
    /// Creates the kernel with factor `a` and offset `b`.
    ///
    /// # Errors
    /// When one of them is not a finite number.
    pub fn new(a: f32, b: f32) -> Result<Self, Error> {
        check::finite("a", a.into())?;
        check::finite("b", b.into())?;
        Ok(Saxpy { affine: Affine::new(a, b) })
    }
}

impl Map for Saxpy {
    type Sample = f32;

    #[inline]
    fn map(&mut self, samples: &mut [f32]) {
        self.affine.in_place(samples);
    }

    fn replica(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn settable(&self) -> &'static [&'static str] {
        &["a", "b"]
    }

    fn change(&self, name: &str, value: &Value) -> Result<Change<Self>, Error> {
        let value: f32 = value.read(name)?;
        let is_a = name == "a";
        tried(self, move |it| {
            let (a, b) = if is_a { (value, it.affine.b()) } else { (it.affine.a(), value) };
            *it = Saxpy::new(a, b)?;
            Ok(())
        })
    }
}
