//! Steps that change samples in place.

use super::Code;
use super::answer::passed;
use crate::context::Heard;
use crate::ports::{OutHead, PortError};
use onbeat::{Context, Error, Step, Tag};
use pyo3::prelude::*;

impl Code {
    /// Takes the next chunk; `false` if there is none. No Python code runs.
    pub(super) fn take(&mut self, cx: &mut Context) -> Result<bool, Error> {
        let Some(port) = &mut self.in_place else { return Ok(false) };
        let is_there = port.fetch(cx)?;
        if let Some((_, info)) = port.info().filter(|_| is_there) {
            let tags = info.tags.iter().map(|tag| (tag.offset, tag.key.to_string(), tag.value.clone()));
            self.context.get().hear(Heard { rate_hz: info.rate_hz, start: info.start, tags: tags.collect() });
        }
        Ok(is_there)
    }

    /// Calls the Python code with the chunk that was taken, and sends the chunk.
    pub(super) fn change(&mut self, py: Python<'_>, cx: &mut Context) -> Result<Step, PortError> {
        let (Some(port), Some(spec)) = (&mut self.in_place, &self.class.in_place) else {
            return Ok(Step::Wait);
        };
        let (samples, own_hz) = port.info().map_or((0, 0.0), |(samples, info)| (samples, info.rate_hz));
        let array = port.lend(py)?;
        let (context, step) = (self.context.get(), self.step.bind(py));
        let result = context.during(cx, || step.call1((&self.context, &array)));
        let answer = result.and_then(|result| passed(&result, samples));
        let wishes = context.wishes();
        match answer {
            Ok((made, is_last)) => {
                let rate_hz = wishes.rate_hz.unwrap_or(own_hz);
                let tags = wishes.tags.into_iter();
                let tags = tags.map(|(offset, key, value)| Tag { offset, key: key.into(), value }).collect();
                port.send(cx, &array, made, OutHead { rate_hz, tags, ..OutHead::default() }, &spec.name)?;
                Ok(if is_last { Step::Done } else { Step::Wait })
            }
            Err(error) => {
                port.revoke(&array);
                Err(error.into())
            }
        }
    }
}
