//! Ports and parameters that the derive macro reads from fields.

use onbeat_runtime::testing::{Feed, Trial, cuts};
use onbeat_runtime::{
    Context, Declared, Error, Hertz, InPlace, Input, Kind, Map, Operator, Output, Registry, Seconds, Step,
    operator,
};

/// Sends every message `copies` times.
///
/// Without any delay.
#[derive(Operator)]
#[operator(name = "copier", prepare = Self::prepare)]
struct Copier {
    input: Input<u64>,
    #[port(name = "more", optional)]
    out: Output<u64>,
    inputs: Vec<Input<f64>>,
    /// How often.
    #[parameter(default = 2, min = 1, max = 9, settable)]
    copies: u32,
    /// Messages that are left out, a list.
    #[parameter(example = [1, 2])]
    without: Vec<u64>,
    /// Time after which it gives up.
    #[parameter(default = "20 ms", above = "1 ms")]
    patience: Seconds,
    /// Highest rate; without it, any.
    #[parameter(max = "1 MHz")]
    rate: Option<Hertz>,
    prepared: u32,
}

impl Copier {
    fn prepare(&mut self) -> Result<(), Error> {
        if self.copies == 7 {
            return Err(Error::new("seven is too many"));
        }
        self.prepared = self.copies;
        Ok(())
    }
}

#[operator]
impl Operator for Copier {
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.patience.0 > 1.0 && self.rate.is_none() {
            return Ok(Step::Done);
        }
        if let Some(n) = self.input.pop(cx).filter(|n| !self.without.contains(n)) {
            for _ in 0..self.prepared {
                self.out.push(cx, n)?;
            }
        }
        Ok(Step::Wait)
    }
}

#[test]
fn fields_are_ports_and_parameters() {
    let kind = Kind::operator::<Copier>();
    assert_eq!((kind.name(), kind.summary()), ("copier", "sends every message `copies` times"));
    assert_eq!((kind.details(), kind.example()), ("Without any delay.", "without = [1, 2]"));
    assert_eq!(kind.settable(), ["copies"]);
    let (inputs, outputs) = kind.ports();
    assert_eq!(inputs[0].name, "in");
    assert_eq!((outputs[0].name.as_str(), outputs[0].required), ("more", false));
    let schema = serde_json::to_value(kind.schema()).unwrap();
    let properties = &schema["properties"];
    assert_eq!(properties["copies"]["default"], 2);
    assert_eq!(properties["copies"]["maximum"], 9.0);
    assert_eq!(properties["patience"]["exclusiveMinimum"], 0.001);
    assert_eq!(properties["patience"]["description"], "Time after which it gives up.");
    assert_eq!(schema["required"], serde_json::json!(["without"]));
}

#[test]
fn limits_are_named_with_value_and_unit() {
    for (text, expected) in [
        ("without = []\ncopies = 10", "`copies` is 10: it must be 9 or less"),
        ("without = []\ncopies = 0", "`copies` is 0: it must be 1 or more"),
        ("without = []\ncopies = 7", "seven is too many"),
        ("without = []\npatience = '1 ms'", "`patience` is 1 ms: it must be above 1 ms"),
        ("without = []\nrate = '2 MHz'", "`rate` is 2 MHz: it must be 1 MHz or less"),
        ("copies = 3", "a parameter of `copier`: missing field `without`"),
    ] {
        assert_eq!(Copier::with(text).err().expect(text).to_string(), expected);
    }
}

#[test]
fn what_is_settable_changes_or_stays() {
    let trial = |copies: i64| {
        let trial = Trial::new(Copier::with("without = [1]").unwrap());
        trial.feed("in", Feed::messages(0..3u64)).set("copies", copies, None)
    };
    assert_eq!(trial(3).run().messages::<u64>("more"), [0, 0, 0, 2, 2, 2]);
    let mut copier = Copier::with("without = [1]").unwrap();
    assert_eq!(copier.set_parameter("copies", &7.into()).unwrap_err().to_string(), "seven is too many");
    assert_eq!((copier.copies, copier.prepared), (2, 2));
}

/// Adds an offset.
#[derive(Clone, Operator)]
struct Shifted {
    /// The offset.
    #[parameter(default = 0.5, settable)]
    by: f32,
}

#[operator]
impl Map for Shifted {
    type Sample = f32;
    fn map(&mut self, samples: &mut [f32]) {
        samples.iter_mut().for_each(|x| *x += self.by);
    }
}

#[test]
fn maps_change_at_their_sample() {
    let seen = cuts(|| {
        let shifted = InPlace::new(Shifted::with("").unwrap());
        Trial::new(shifted).feed("in", Feed::samples(vec![0.0f32; 100])).set("by", 2.0, Some(30))
    });
    assert_eq!(seen.samples::<f32>("out"), [vec![0.5; 30], vec![2.0; 70]].concat());
    let mut registry = Registry::default();
    registry.add(Kind::map::<Shifted>());
    let seen = Trial::kind(&registry, "shifted", "by = 1.0").feed("in", Feed::samples(vec![1.0f32])).run();
    assert_eq!(seen.samples::<f32>("out"), [2.0]);
}

/// Its author has forgotten `#[operator]`, so its parameter cannot be changed.
#[derive(Default, Operator)]
struct Forgetful {
    input: Input<u64>,
    /// A number.
    #[parameter(default = 1, settable)]
    number: u32,
}

impl Operator for Forgetful {
    fn ports(&mut self, p: &mut onbeat_runtime::Ports) {
        self.show_ports(p);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        self.number += self.input.pop(cx).map_or(0, |_| 1);
        Ok(Step::Wait)
    }
}

#[test]
#[should_panic(
    expected = "`forgetful` cannot change `number`: write `#[operator]` over the `impl` of its trait"
)]
fn a_forgotten_attribute_is_told() {
    Kind::operator::<Forgetful>().ports();
}
