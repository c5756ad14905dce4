//! The file and the settings as one text, so that one span can refer to either.

use super::error::{Fault, PipelineError, line_column};
use super::overrides::{Override, Overrides, Setting};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Text of the file and the settings. The file is at `0..text.len()`. The settings follow, each after a gap
/// of one byte.
pub(super) struct Source<'a> {
    file: &'a str,
    text: &'a str,
    overrides: &'a Overrides,
}

impl<'a> Source<'a> {
    pub fn new(file: &'a str, text: &'a str, overrides: &'a Overrides) -> Self {
        Source { file, text, overrides }
    }

    fn placed(&self) -> impl Iterator<Item = (usize, &'a Override)> {
        let mut base = self.text.len() + 1;
        self.overrides.0.iter().map(move |setting| {
            let here = base;
            base += setting.text.len() + 1;
            (here, setting)
        })
    }

    /// The name of the file, its text and the settings, to be kept.
    pub fn owned(&self) -> (String, String, Overrides) {
        (self.file.to_string(), self.text.to_string(), self.overrides.clone())
    }

    pub fn parse(&self) -> Result<DeTable<'a>, Fault> {
        let table = DeTable::parse(self.text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            Fault::at(span, format!("not TOML: {}", error.message()))
        })?;
        Ok(table.into_inner())
    }

    pub fn settings(&self) -> Result<Vec<Setting<'a>>, Fault> {
        self.placed().map(|(base, setting)| setting.read(base)).collect()
    }

    /// Line of the file in which `span` begins.
    pub fn line(&self, span: &Range<usize>) -> usize {
        line_column(self.text, span.start).0
    }

    pub fn error(&self, fault: Fault) -> PipelineError {
        let setting = fault.span.clone().filter(|span| span.start > self.text.len()).and_then(|span| {
            self.placed()
                .find(|(base, setting)| span.start <= base + setting.text.len())
                .map(|found| (span, found))
        });
        match setting {
            Some((span, (base, setting))) => {
                let span = span.start.saturating_sub(base)..span.end.saturating_sub(base);
                PipelineError::placed(fault, &setting.flag, &setting.text, Some(span), true)
            }
            None => {
                let span = fault.span.clone();
                PipelineError::placed(fault, self.file, self.text, span, false)
            }
        }
    }
}

/// Moves the spans of a value `by` bytes further down the source.
pub(super) fn shifted(value: Spanned<DeValue<'_>>, by: usize) -> Spanned<DeValue<'_>> {
    let span = moved(&value.span(), by);
    let value = match value.into_inner() {
        DeValue::Array(array) => DeValue::Array(array.into_iter().map(|value| shifted(value, by)).collect()),
        DeValue::Table(table) => DeValue::Table(
            table
                .into_iter()
                .map(|(key, value)| {
                    (Spanned::new(moved(&key.span(), by), key.into_inner()), shifted(value, by))
                })
                .collect(),
        ),
        plain => plain,
    };
    Spanned::new(span, value)
}

fn moved(span: &Range<usize>, by: usize) -> Range<usize> {
    span.start + by..span.end + by
}
