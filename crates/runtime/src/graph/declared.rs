//! Operators whose ports and parameters are fields: what the derive macro fills in.

use crate::operator::generated::{Generated, Generator};
use crate::operator::kernel::{Change, Kernel, Map};
use crate::{Combine, Combined, Error, Folders, InPlace, Kind, Operator, Ports, Stream, Value};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use toml::de::{DeTable, Deserializer};

/// An operator, [`Map`], [`Kernel`], [`Generator`] or [`Combine`](crate::Combine) whose ports and parameters
/// are fields.
///
/// The derive macro `Operator` implements it from the fields, and the attribute `#[operator]` puts what it
/// found into the implementation of the trait:
///
/// ```
/// # extern crate onbeat_runtime as onbeat;
/// use onbeat::{Chunk, Decibels, Declared, Error, Kind, Map, Operator, Registry, operator};
///
/// /// Multiplies samples by a gain.
/// #[derive(Operator, Clone)]
/// #[operator(prepare = Self::prepare)]
/// struct Louder {
///     /// Gain.
///     #[parameter(default = "6 dB", max = "60 dB", settable)]
///     gain: Decibels,
///     factor: f32,
/// }
///
/// impl Louder {
///     fn prepare(&mut self) -> Result<(), Error> {
///         self.factor = 10f32.powf(self.gain.0 as f32 / 20.0);
///         Ok(())
///     }
/// }
///
/// #[operator]
/// impl Map for Louder {
///     type Sample = f32;
///     fn map(&mut self, samples: &mut [f32]) {
///         samples.iter_mut().for_each(|x| *x *= self.factor);
///     }
/// }
///
/// let mut registry = Registry::default();
/// registry.add(Kind::map::<Louder>());
/// assert_eq!(registry.get("louder").unwrap().summary(), "multiplies samples by a gain");
/// assert_eq!(registry.get("louder").unwrap().settable(), ["gain"]);
/// let error = Louder::with("gain = '80 dB'").err().unwrap();
/// assert_eq!(error.to_string(), "`gain` is 80 dB: it must be 60 dB or less");
/// ```
pub trait Declared: Sized + Send + 'static {
    /// The parameters, as serde reads them.
    type Parameters: DeserializeOwned + Serialize + JsonSchema + 'static;
    /// Name of the kind in files.
    const NAME: &'static str;
    /// Summary of one line.
    const SUMMARY: &'static str;
    /// What a user has to know to trust its output, in Markdown.
    const ABOUT: &'static str;
    /// Valid parameters, in TOML.
    const EXAMPLE: &'static str;
    /// Names of the parameters that can be changed during a run.
    const SETTABLE: &'static [&'static str];

    /// Names the ports.
    fn show_ports(&mut self, p: &mut Ports);

    /// Makes an operator.
    ///
    /// # Errors
    /// If a parameter is outside of its limits, or the operator refuses the parameters.
    fn make(parameters: &Self::Parameters, folders: &Folders) -> Result<Self, Error>;

    /// Changes a parameter at once. After an error nothing is changed.
    ///
    /// # Errors
    /// If the parameter cannot have this value.
    fn set_parameter(&mut self, name: &str, value: &Value) -> Result<(), Error>;

    /// Returns the change of a parameter, tried on a copy.
    ///
    /// # Errors
    /// If the parameter cannot have this value.
    fn change_parameter(&self, name: &str, value: &Value) -> Result<Change<Self>, Error>;

    /// Makes an operator from parameters in TOML, for tests and for graphs that are built in Rust. Relative
    /// file names begin at the current folder.
    ///
    /// # Errors
    /// If a parameter is wrong, or the operator refuses its value.
    fn with(parameters: &str) -> Result<Self, Error> {
        let wrong = |error: toml::de::Error| {
            Error::new(format!("a parameter of `{}`: {}", Self::NAME, error.message()))
        };
        let table = DeTable::parse(parameters).map_err(wrong)?;
        let read = Self::Parameters::deserialize(Deserializer::from(table)).map_err(wrong)?;
        Self::make(&read, &Folders { input: "".into(), output: "".into() })
    }
}

/// Kinds of operators whose parameters are fields.
impl Kind {
    fn declared<T: Declared, O: Operator>(make: fn(&T::Parameters, &Folders) -> Result<O, Error>) -> Self {
        Kind::new(T::NAME, T::SUMMARY, T::EXAMPLE, make).about(T::ABOUT).can_set(T::SETTABLE)
    }

    /// Makes the kind of an operator.
    pub fn operator<T: Declared + Operator>() -> Self {
        Kind::declared::<T, T>(|parameters, folders| T::make(parameters, folders))
    }

    /// Makes the kind of a map: an operator that changes samples in place.
    pub fn map<T: Declared + Map>() -> Self {
        Kind::declared::<T, _>(|parameters, folders| T::make(parameters, folders).map(InPlace::new))
    }

    /// Makes the kind of a function of several streams.
    pub fn combine<T: Declared + Combine>() -> Self {
        Kind::declared::<T, _>(|parameters, folders| T::make(parameters, folders).map(Combined::new))
    }

    /// Makes the kind of a generator: a source of samples that keeps time.
    pub fn generator<T: Declared + Generator>() -> Self {
        Kind::declared::<T, _>(|parameters, folders| T::make(parameters, folders).map(Generated::new))
    }

    /// Makes the kind of a kernel: an operator from one stream to another.
    pub fn kernel<T: Declared + Kernel>() -> Self {
        Kind::declared::<T, _>(|parameters, folders| T::make(parameters, folders).map(Stream::new))
    }
}

#[doc(hidden)]
pub use crate::operator::kernel::not_settable;
#[doc(hidden)]
pub use {schemars, serde};

/// Direction of a limit.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub enum LimitKind {
    /// This or more.
    Min,
    /// This or less.
    Max,
    /// More than this.
    Above,
    /// Less than this.
    Below,
}

/// A parameter that can have limits.
#[doc(hidden)]
pub trait Limited {
    /// Returns its value in the base unit; `None` if it was left out.
    fn number(&self) -> Option<f64>;
    /// Returns its value as users write it.
    fn words(&self) -> String;
}

macro_rules! limited {
    ($($type:ty: $this:ident => $number:expr);* $(;)?) => { $(impl Limited for $type {
        fn number(&self) -> Option<f64> {
            let $this = self;
            Some($number)
        }
        fn words(&self) -> String {
            self.to_string()
        }
    })* };
}

limited! {
    f32: it => f64::from(*it);
    f64: it => *it;
    u8: it => f64::from(*it);
    u16: it => f64::from(*it);
    u32: it => f64::from(*it);
    i32: it => f64::from(*it);
    u64: it => *it as f64;
    i64: it => *it as f64;
    usize: it => *it as f64;
    crate::Hertz: it => it.0;
    crate::Seconds: it => it.0;
    crate::Decibels: it => it.0;
    crate::Bytes: it => it.0;
}

impl<T: Limited> Limited for Option<T> {
    fn number(&self) -> Option<f64> {
        self.as_ref().and_then(Limited::number)
    }
    fn words(&self) -> String {
        self.as_ref().map(Limited::words).unwrap_or_default()
    }
}

/// Reads a default or a limit that the program states.
///
/// # Panics
/// If it is wrong, which is a mistake in the program that the first use of the kind shows.
#[doc(hidden)]
pub fn text<T: FromStr<Err: fmt::Display>>(name: &str, text: &str) -> T {
    text.parse()
        .unwrap_or_else(|error| panic!("the default or limit {text:?} of the parameter `{name}`: {error}"))
}

/// Reads a limit, in the base unit.
#[doc(hidden)]
pub fn limit<T: FromStr<Err: fmt::Display> + Limited>(name: &str, value: &str) -> f64 {
    text::<T>(name, value).number().unwrap_or(f64::NAN)
}

/// Checks a parameter against a limit, whose words are `text`.
///
/// # Errors
/// If the value is not a finite number, or beyond the limit.
#[doc(hidden)]
pub fn check(name: &str, value: &impl Limited, kind: LimitKind, limit: f64, text: &str) -> Result<(), Error> {
    let Some(number) = value.number() else { return Ok(()) };
    let (is_good, rule) = match kind {
        LimitKind::Min => (number >= limit, format!("{text} or more")),
        LimitKind::Max => (number <= limit, format!("{text} or less")),
        LimitKind::Above => (number > limit, format!("above {text}")),
        LimitKind::Below => (number < limit, format!("below {text}")),
    };
    match (number.is_finite(), is_good) {
        (true, true) => Ok(()),
        (true, false) => Err(Error::new(format!("`{name}` is {}: it must be {rule}", value.words()))),
        (false, _) => Err(Error::new(format!("`{name}` is {number}: it must be a finite number, {rule}"))),
    }
}
