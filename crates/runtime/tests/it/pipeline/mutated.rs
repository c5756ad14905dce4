//! Whatever the text: an answer, and never a panic.

use super::{CHAIN, read, read_with};
use proptest::prelude::*;

const ALL: &str = include_str!("../../pipelines/valid/everything.toml");

/// Reading, and everything that an error can be asked for.
fn survives(text: &str, settings: &[&str]) {
    if let Err(error) = read_with(text, settings) {
        let _ = (error.to_string(), error.help(), error.line_column());
        if let Some(span) = error.span() {
            assert!(error.text().get(span).is_some(), "{error}");
        }
    }
}

proptest! {
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        survives(&String::from_utf8_lossy(&bytes), &[]);
    }

    #[test]
    fn any_text_in_a_setting(setting in ".{0,40}", key in "(numbers|duration|defaults|operator)(\\.[a-z]{0,4}){0,2}") {
        survives(CHAIN, &[&setting, &format!("{key}={setting}")]);
    }

    #[test]
    fn a_valid_file_with_bytes_replaced(
        changes in proptest::collection::vec((0..ALL.len(), any::<u8>()), 1..6),
        cut in 0..ALL.len(),
    ) {
        let mut bytes = ALL.as_bytes().to_vec();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        survives(&String::from_utf8_lossy(&bytes), &[]);
        survives(&String::from_utf8_lossy(&bytes[..cut]), &[]);
    }

    #[test]
    fn a_valid_file_with_lines_moved(lines in proptest::collection::vec(0..ALL.lines().count(), 1..60)) {
        let all: Vec<&str> = ALL.lines().collect();
        let text: Vec<&str> = lines.iter().map(|&line| all[line]).collect();
        survives(&text.join("\n"), &[]);
    }

    #[test]
    fn a_value_of_another_type(at in 0..200_usize, value in "(-1|0|1e999|nan|true|\"\"|\"x\"|\\[\\]|\\{\\}|1979-05-27|0x7fffffffffffffff)") {
        let mut lines: Vec<String> = ALL.lines().map(str::to_string).collect();
        let at = at % lines.len();
        if let Some((key, _)) = lines[at].split_once(" = ") {
            lines[at] = format!("{key} = {value}");
        }
        survives(&lines.join("\n"), &[]);
    }
}

#[test]
fn the_file_that_is_changed_is_valid() {
    read(ALL).unwrap();
}
