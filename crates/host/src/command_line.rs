//! The kernel's command line: parsed as the kernel parses it, and edited without losing anything.

use std::fmt;

/// Parameters in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandLine {
    parameters: Vec<Parameter>,
    /// Text after `--`, for the first program.
    rest: Option<String>,
}

/// A parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Name, as written.
    pub name: String,
    /// Text after the first `=`, without surrounding quotes.
    pub value: Option<String>,
}

impl CommandLine {
    /// Parses a command line. Any text is one.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut line = CommandLine::default();
        let mut words = words(text).into_iter();
        for word in words.by_ref() {
            if word == "--" {
                break;
            }
            let word = word.trim_matches('"');
            let (name, value) =
                word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
            let value = value.map(|value| value.trim_matches('"').to_owned());
            line.parameters.push(Parameter { name: name.to_owned(), value });
        }
        let rest: Vec<&str> = words.collect();
        line.rest = (!rest.is_empty()).then(|| rest.join(" "));
        line
    }

    /// Returns all parameters.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Returns the last parameter of this name; `-` and `_` are the same, as for the kernel.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Parameter> {
        self.parameters.iter().rev().find(|parameter| same(&parameter.name, name))
    }

    /// Returns the value of a parameter; empty if it has none.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        self.get(name).map(|parameter| parameter.value.as_deref().unwrap_or(""))
    }

    /// Keeps the parameters for which `keep` returns true.
    pub fn retain(&mut self, keep: impl FnMut(&Parameter) -> bool) {
        self.parameters.retain(keep);
    }

    /// Sets a value in the first place where the name occurs, or at the end. Other parameters of that name
    /// are removed.
    pub fn set(&mut self, name: &str, value: Option<&str>) {
        let new = Parameter { name: name.to_owned(), value: value.map(str::to_owned) };
        let place = self.parameters.iter().position(|parameter| same(&parameter.name, name));
        self.parameters.retain(|parameter| !same(&parameter.name, name));
        let place = place.unwrap_or(self.parameters.len()).min(self.parameters.len());
        self.parameters.insert(place, new);
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            None => f.write_str(&self.name),
            Some(value) if value.contains(char::is_whitespace) => write!(f, "{}=\"{value}\"", self.name),
            Some(value) => write!(f, "{}={value}", self.name),
        }
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words: Vec<String> = self.parameters.iter().map(ToString::to_string).collect();
        if let Some(rest) = &self.rest {
            words.extend(["--".to_owned(), rest.clone()]);
        }
        f.write_str(&words.join(" "))
    }
}

fn same(a: &str, b: &str) -> bool {
    a.len() == b.len()
        && a.bytes().zip(b.bytes()).all(|(a, b)| a == b || (a, b) == (b'-', b'_') || (a, b) == (b'_', b'-'))
}

/// Splits at white space outside of quotes.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut begin, mut quoted) = (None, false);
    for (place, c) in text.char_indices() {
        match c {
            c if c.is_whitespace() && !quoted => {
                words.extend(begin.take().map(|begin| &text[begin..place]));
            }
            c => {
                quoted ^= c == '"';
                begin.get_or_insert(place);
            }
        }
    }
    words.extend(begin.map(|begin| &text[begin..]));
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parameters_are_found_as_the_kernel_finds_them() {
        let line = CommandLine::parse(
            "quiet isolcpus=1 dyndbg=\"file x +p\" rcu-nocbs=2 isolcpus=domain,2-3 -- nosmt",
        );
        assert_eq!(line.value("isolcpus"), Some("domain,2-3"));
        assert_eq!(line.value("rcu_nocbs"), Some("2"));
        assert_eq!(line.value("dyndbg"), Some("file x +p"));
        assert_eq!((line.value("quiet"), line.value("nosmt")), (Some(""), None));
    }

    #[test]
    fn changing_one_leaves_the_others() {
        let mut line = CommandLine::parse("root=/dev/sda1 isolcpus=1 a=\"b c\" isolcpus=2 quiet -- init x");
        line.set("isolcpus", Some("managed_irq,domain,2-5"));
        line.set("skew_tick", Some("1"));
        line.set("nowatchdog", None);
        assert_eq!(
            line.to_string(),
            "root=/dev/sda1 isolcpus=managed_irq,domain,2-5 a=\"b c\" quiet skew_tick=1 nowatchdog -- init x"
        );
    }

    proptest! {
        #[test]
        fn what_was_written_reads_as_the_same(
            words in proptest::collection::vec("[a-c_-]{1,4}(=[a-c,0-9]{0,3}|=\"[a-c ]{0,4}\")?", 0..8)
        ) {
            let line = CommandLine::parse(&words.join(" "));
            prop_assert_eq!(CommandLine::parse(&line.to_string()), line);
        }

        #[test]
        fn any_text_is_a_command_line(text in "[a-c=_\" \\-]{0,40}") {
            let _ = CommandLine::parse(&text).to_string();
        }
    }
}
