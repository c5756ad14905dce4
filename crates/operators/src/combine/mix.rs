//! Weighted sum of several streams.

use crate::check;
use crate::lanes::{check_count, numbered};
use onbeat_runtime::{Combine, Error, Operator, Sample, Slices, operator};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{AddAssign, Mul};

/// Weights of streams, in the order of the inputs: a list of numbers, or text such as `"0.5, -1"`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Weights(Vec<f32>);

impl<'de> Deserialize<'de> for Weights {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WeightsVisitor;
        impl<'de> Visitor<'de> for WeightsVisitor {
            type Value = Weights;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of numbers such as [0.5, -1], or the text \"0.5, -1\"")
            }

            fn visit_f64<E: de::Error>(self, weight: f64) -> Result<Weights, E> {
                Ok(Weights(vec![weight as f32]))
            }

            fn visit_i64<E: de::Error>(self, weight: i64) -> Result<Weights, E> {
                Ok(Weights(vec![weight as f32]))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Weights, E> {
                let inner = text.trim().trim_start_matches('[').trim_end_matches(']');
                let read = |word: &str| word.trim().parse::<f32>().ok();
                let weights: Option<Vec<f32>> = inner.split(',').map(read).collect();
                weights.map(Weights).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Weights, A::Error> {
                let mut weights = Vec::new();
                while let Some(weight) = list.next_element::<f32>()? {
                    weights.push(weight);
                }
                Ok(Weights(weights))
            }
        }
        deserializer.deserialize_any(WeightsVisitor)
    }
}

impl JsonSchema for Weights {
    fn schema_name() -> Cow<'static, str> {
        "Weights".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["array", "string"], "items": { "type": "number" } })
    }
}

/// Weighted sum of several streams: output `k` is the sum over all streams of weight times sample `k`.
///
/// The sum is computed in 32-bit floating point, in the order of the inputs. All streams must have the same
/// sample rate. The output ends with the shortest stream.
#[derive(Debug, Clone, Operator)]
#[operator(summary = "weighted sum of several streams", prepare = Self::prepare)]
pub struct Mix<T: Sample + Mul<f32, Output = T> + AddAssign> {
    /// Factor of each stream, linear, in the order of the inputs. Their number is that of the inputs, from 1
    /// to 64, which are called `in0`, `in1`, ... During a run it can be changed to text such as `"0.5, -1"`.
    #[parameter(example = [0.5, 0.5], settable)]
    weights: Weights,
    /// Number of inputs; 0 until it is known.
    streams: usize,
    samples: PhantomData<fn() -> T>,
}

impl<T: Sample + Mul<f32, Output = T> + AddAssign> Mix<T> {
    fn prepare(&mut self) -> Result<(), Error> {
        let count = self.weights.0.len();
        check_count("weights", count as u64)
            .map_err(|_| Error::new(format!("`weights` has {count} numbers: it must have from 1 to 64")))?;
        for weight in &self.weights.0 {
            check::finite("weights", f64::from(*weight))?;
        }
        if self.streams == 0 {
            self.streams = count;
        }
        if self.streams != count {
            return Err(Error::new(format!(
                "`weights` has {count} numbers, but there are {} inputs: give one number for each",
                self.streams
            )));
        }
        Ok(())
    }
}

#[operator]
impl<T: Sample + Mul<f32, Output = T> + AddAssign> Combine for Mix<T> {
    type In = [T];
    type Out = T;

    fn inputs(&self) -> Vec<String> {
        numbered(self.streams)
    }

    fn combine(&mut self, inputs: Slices<'_, T>, out: &mut [T]) {
        let mut streams = self.weights.0.iter().zip(inputs.each());
        if let Some((weight, samples)) = streams.next() {
            out.iter_mut().zip(samples).for_each(|(y, x)| *y = *x * *weight);
        }
        for (weight, samples) in streams {
            out.iter_mut().zip(samples).for_each(|(y, x)| *y += *x * *weight);
        }
    }
}
