//! Files that are damaged, absurd, or not tables.

use super::Csv;
use crate::harness::watched;
use onbeat_operators::registry;
use proptest::prelude::*;

#[test]
fn what_is_no_table_is_an_error() {
    let columns = "columns = [\"x\"]";
    let many = format!("x{}\n", ",".repeat(100_000));
    let long = format!("x\n1\n\"{}", "y".repeat(3 << 20));
    for (text, parameters, expected) in [
        (&b""[..], columns, "it is empty: there are no rows"),
        (b"\n\n\r\n", columns, "it is empty: there are no rows"),
        (b"a,b\n1,2\n", columns, "there is no column `x`: the header has `a`, `b`; give one of them"),
        (
            b"1,2\n3,4\n",
            columns,
            "there is no column `x`: the file has no header, so give a number from 1 to 2",
        ),
        (b"1,2\n3,4\n", "columns = [\"3\"]", "there is no column `3`"),
        (b"1,2\n3,4\n", "columns = [\"0\"]", "there is no column `0`"),
        (b"x,y,x\n1,2,3\n", columns, "its columns 1 and 3 are both called `x`"),
        (b"x,y\n1,2\n3\n", columns, "line 3: it has 1 fields, and the first row has 2"),
        (b"x,y\r\n1,2\r\n3,4,5\r\n", columns, "line 3: it has 3 fields, and the first row has 2"),
        (b"x\n1\n\"2\n3\n4\n", columns, "line 3: a double quote opens a field that is never closed"),
        (b"x,y\n1,\"2\n3,\"4\n5,6\n", "columns = [\"y\"]", "has a line break"),
        (b"\xff\xfex\0\n\0", columns, "its text is UTF-16"),
        (&[0; 4096], columns, "there is no column `x`"),
        (many.as_bytes(), columns, "line 1 has more than 65536 fields"),
        (long.as_bytes(), columns, "the row that begins in line 3 is longer than 1 MiB"),
    ] {
        let said = Csv::new(text).refused(parameters);
        assert!(said.contains(expected) && said.contains("in.csv"), "{expected}: {said}");
        assert!(said.len() < 500 && !said.contains('\0'), "{said}");
    }
}

#[test]
fn absurd_parameters_are_refused() {
    for (parameters, expected) in [
        ("columns = []", "`columns` is 0"),
        ("columns = [\"\"]", "`columns` has an empty name"),
        ("columns = [\"x\"]\ndelimiter = \"e\"", "`delimiter` is `e`"),
        ("columns = [\"x\"]\ndelimiter = \"é\"", "`delimiter` is `é`"),
        ("columns = [\"x\"]\ndelimiter = \",,\"", "expected a character"),
        ("columns = [\"x\"]\ndecimal = \",\"", "give the delimiter of the file"),
        ("columns = [\"x\"]\ncomment = \",\"", "must differ"),
        ("columns = [\"x\"]\ntime = \"\"", "`time` is empty"),
        ("columns = [\"x\"]\njitter = 0.6", "`jitter` is 0.6"),
        ("columns = [\"x\"]\nsample_rate = 0", "`sample_rate` is 0"),
    ] {
        let text = format!("path = \"no\"\n{parameters}");
        let said = registry().operator("csv.source", &text).err().expect(parameters).to_string();
        assert!(said.contains(expected), "{parameters}: {said}");
    }
}

#[test]
fn a_file_without_rows_ends() {
    for repeat in [0, 1, 5] {
        let seen = watched(move || Csv::new("x,y\n").play(&format!("columns = [\"x\"]\nrepeat = {repeat}")));
        assert!(seen.samples::<f32>("out").is_empty());
        assert!(seen.notes()[0].contains("has no rows of numbers"), "{:?}", seen.notes());
    }
}

proptest! {
    /// Any bytes: numbers or an error, never a panic or a hang.
    #[test]
    fn any_bytes_are_played_or_refused(
        bytes in prop::collection::vec(prop::sample::select(b"0123456789.,;\"\n\r -e#x\0\xef\xff".to_vec()), 0..200)
    ) {
        let csv = Csv::new(&bytes);
        for parameters in [
            "columns = [\"1\"]",
            "columns = [\"1\"]\ntime = \"2\"\nheader = false",
            "columns = [\"1\"]\ndelimiter = \";\"\ndecimal = \",\"\ncomment = \"#\"\nmissing = \"hold\"",
        ] {
            if let Err(said) = csv.trial("csv.source", parameters).try_run() {
                prop_assert!(said.contains("in.csv") && !said.contains("panic"), "{}", said);
            }
        }
        if let Err(said) = csv.trial("csv.source.value", "columns = [\"1\"]\ntime = \"2\"").try_run() {
            prop_assert!(said.contains("in.csv") && !said.contains("panic"), "{}", said);
        }
    }
}
