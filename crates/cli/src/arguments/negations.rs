//! What rtla understands beyond options: no sub-command means `top`, and in version 7.2 `--no-OPTION` takes
//! back an option that was given before. `--header` takes back `--no-header`.

use clap::{Arg, ArgAction, Command};
use std::ffi::{OsStr, OsString};

/// Commands with rtla's options.
const COMMANDS: [&str; 2] = ["noise", "timerlat"];

/// Returns the arguments with the sub-command, without negations, and without what they take back.
pub fn applied(mut words: Vec<OsString>, whole: &Command) -> Vec<OsString> {
    let text = |words: &[OsString], at: usize| {
        words.get(at).map_or(String::new(), |word| word.to_string_lossy().into_owned())
    };
    let name = text(&words, 1);
    let group = whole.get_subcommands().find(|command| command.get_name() == name);
    let Some(group) = group.filter(|_| COMMANDS.contains(&name.as_str())) else { return words };
    let second = text(&words, 2);
    if second.starts_with('-') && !["-h", "--help"].contains(&second.as_str()) {
        words.insert(2, "top".into());
    }
    let second = text(&words, 2);
    let Some(command) = group.get_subcommands().find(|command| command.get_name() == second) else {
        return words;
    };
    let is_negated =
        words.iter().skip(3).filter_map(|word| word.to_str()).any(|word| negated(command, word).is_some());
    if !is_negated {
        return words;
    }
    let mut kept: Vec<Given> = Vec::new();
    let mut rest = words[3..].iter();
    while let Some(word) = rest.next() {
        match negated(command, &word.to_string_lossy()) {
            Some(id) => kept.retain(|given| given.id != Some(id)),
            None => kept.extend(given(command, word, &mut rest)),
        }
    }
    let kept = kept.into_iter().flat_map(|given| given.words);
    words[..3].iter().cloned().chain(kept).collect()
}

/// Words of one option, or one that is none.
struct Given<'c> {
    id: Option<&'c str>,
    words: Vec<OsString>,
}

/// The option that a word takes back.
fn negated<'c>(command: &'c Command, word: &str) -> Option<&'c str> {
    let name = word.strip_prefix("--")?;
    if long(command, name).is_some() {
        return None;
    }
    let taken_back = name.strip_prefix("no-").and_then(|name| long(command, name));
    taken_back.or_else(|| long(command, &format!("no-{name}"))).map(|argument| argument.get_id().as_str())
}

fn long<'c>(command: &'c Command, name: &str) -> Option<&'c Arg> {
    command.get_arguments().find(|argument| argument.get_long() == Some(name))
}

fn takes_value(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Set | ArgAction::Append)
}

/// Whether the value may be missing.
fn may_be_bare(argument: &Arg) -> bool {
    argument.get_num_args().is_some_and(|count| count.min_values() == 0)
}

/// Takes a word with its value apart into options.
fn given<'c>(
    command: &'c Command,
    word: &OsStr,
    rest: &mut std::slice::Iter<'_, OsString>,
) -> Vec<Given<'c>> {
    let text = word.to_string_lossy();
    let mut value = |argument: &Arg| {
        let next = rest.as_slice().first()?;
        let is_value = !may_be_bare(argument) || !next.to_string_lossy().starts_with('-');
        if is_value { rest.next().cloned() } else { None }
    };
    let alone = |id| vec![Given { id, words: vec![word.to_owned()] }];
    if let Some(name) = text.strip_prefix("--") {
        let (name, has_value) = name.split_once('=').map_or((name, false), |(name, _)| (name, true));
        let Some(argument) = long(command, name) else { return alone(None) };
        let mut found = alone(Some(argument.get_id().as_str()));
        if takes_value(argument) && !has_value {
            found[0].words.extend(value(argument));
        }
        return found;
    }
    let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
        return alone(None);
    };
    let mut found = Vec::new();
    for (at, letter) in letters.char_indices() {
        let Some(argument) = command.get_arguments().find(|argument| argument.get_short() == Some(letter))
        else {
            return alone(None);
        };
        let (id, behind) = (Some(argument.get_id().as_str()), &letters[at + letter.len_utf8()..]);
        if !takes_value(argument) {
            found.push(Given { id, words: vec![format!("-{letter}").into()] });
            continue;
        }
        let mut words: Vec<OsString> = vec![format!("-{letter}{behind}").into()];
        if behind.is_empty() {
            words.extend(value(argument));
        }
        found.push(Given { id, words });
        break;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn after(line: &str) -> String {
        let words = line.split(' ').map(OsString::from).collect();
        let words = applied(words, &crate::arguments::Arguments::command());
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn an_option_is_taken_back() {
        for (line, expected) in [
            ("onbeat timerlat top -c 1 -q --no-quiet", "onbeat timerlat top -c 1"),
            ("onbeat timerlat top -nq -d 5s --no-nano", "onbeat timerlat top -q -d 5s"),
            ("onbeat timerlat hist -a 30 --no-auto -d 1", "onbeat timerlat hist -d 1"),
            ("onbeat timerlat hist --period=100 -p 200 --no-period", "onbeat timerlat hist"),
            ("onbeat timerlat hist -t --no-trace -q", "onbeat timerlat hist -q"),
            ("onbeat timerlat hist -t x.txt -q --no-trace", "onbeat timerlat hist -q"),
            ("onbeat timerlat hist --no-header --header", "onbeat timerlat hist"),
            ("onbeat timerlat hist --no-irq", "onbeat timerlat hist --no-irq"),
            ("onbeat noise hist -T5 --no-threshold -T 3", "onbeat noise hist -T 3"),
            ("onbeat noise hist --no-such -d 1", "onbeat noise hist --no-such -d 1"),
            ("onbeat timerlat -q -a 5", "onbeat timerlat top -q -a 5"),
            ("onbeat noise --help", "onbeat noise --help"),
            ("onbeat run --no-record x", "onbeat run --no-record x"),
        ] {
            assert_eq!(after(line), expected, "{line}");
        }
    }
}
