//! Conditions from text.

use super::{pointed, read};
fn with(when: &str) -> String {
    super::CHAIN.replace("kind = \"end\"\n", &format!("kind = \"end\"\n{when}\n"))
}

#[test]
fn all_forms_are_read_and_shown() {
    for when in [
        "messages = 2",
        "messages = 2, port = \"in\"",
        "batch = 2, delay = \"1 ms\"",
        "any = [\"in\"]",
        "all = \"all\", messages = 2, timeout = \"5 ms\"",
        "sum = [\"in\"], messages = 2",
        "count = 9",
        "gate = \"now\"",
        "gate = \"now\", open = true",
        "period = \"1 us\"",
        "period = \"1 MHz\"",
        "period = \"1 us\", overrun = \"catch_up\"",
        "any_of = [{ messages = 4 }, { gate = \"now\" }]",
    ] {
        for text in [
            with(&format!("when = {{ {when} }}")),
            with(&format!("when = [{{ {when} }}, {{ count = 100 }}]")),
        ] {
            let pipeline = read(&text).unwrap_or_else(|error| panic!("{when}: {error}"));
            let record = pipeline.start().unwrap().wait().unwrap_or_else(|error| panic!("{when}: {error}"));
            assert_eq!(record.edges[0].received, 3, "{when}");
            let shown = record.config["operator"][1]["when"][0].as_object().unwrap();
            assert!(shown.keys().all(|key| when.contains(key.as_str())), "{when}: {shown:?}");
        }
    }
}

#[test]
fn a_count_in_a_file_ends_it() {
    let record = read(&with("when = { count = 2 }")).unwrap().start().unwrap().wait().unwrap();
    assert_eq!((record.edges[0].received, record.result.exit_status), (2, 0));
}

#[test]
fn gates_and_events_are_there_for_others() {
    let run = read(&with("when = [{ gate = \"now\", open = false }, { event = \"go\" }]"))
        .unwrap()
        .start()
        .unwrap();
    assert!(!run.is_finished() && run.gate("then").is_none() && run.event("now").is_none());
    run.gate("now").unwrap().open();
    while !run.is_finished() {
        run.event("go").unwrap().ring();
        std::thread::yield_now();
    }
    assert_eq!(run.wait().unwrap().edges[0].received, 3);
}

/// The condition, what is said, and the text that it is about.
#[test]
fn wrong_conditions_are_refused_at_their_place() {
    let table = [
        ("when = 4", "expected a condition, found an integer", "4"),
        ("when = []", "has no conditions", "[]"),
        ("when = [4]", "expected a table, found an integer", "4"),
        ("when = {}", "does not say what it waits for", "{}"),
        ("when = { mesages = 4 }", "unknown key `mesages`", "mesages"),
        ("when = { messages = 4, delay = 3 }", "unknown key `delay`", "delay"),
        ("when = { messages = 0 }", "0 must be a whole number from 1", "0"),
        ("when = { messages = 9223372036854775807 }", "must be a whole number from 1", "9223372036854775807"),
        ("when = { messages = \"4\" }", "`messages` of", "\"4\""),
        ("when = { messages = 1, port = \"out\" }", "there is no input `out`", ""),
        ("when = { messages = 99 }", "at most 4 can wait", ""),
        ("when = { batch = 2 }", "lacks `delay`", "{ batch = 2 }"),
        ("when = { batch = 2, delay = 0 }", "must be above 0", "0"),
        ("when = { batch = 2, delay = \"x\" }", "`delay` of", "\"x\""),
        ("when = { any = \"in\" }", "`any` of", "\"in\""),
        ("when = { sum = [\"in\"] }", "lacks `messages`", ""),
        ("when = { any = [] }", "it names no input", "[]"),
        ("when = { all = [\"\"] }", "an input has no name", "[\"\"]"),
        ("when = { sum = [\"in\", \"in\"], messages = 2 }", "it names the input `in` twice", ""),
        (
            "when = [{ gate = \"g\", open = true }, { gate = \"g\", open = false }]",
            "gate `g` begins open here",
            "false",
        ),
        ("when = { period = \"0 Hz\" }", "must be above 0", "\"0 Hz\""),
        ("when = { period = \"soon\" }", "is not a time", "\"soon\""),
        ("when = { any = [\"in\"], timeout = \"-1s\" }", "must be above 0", "\"-1s\""),
        ("when = { room = 1 }", "about an output, and there is none", ""),
        ("when = { room = -1 }", "-1 must be a whole number from 0", "-1"),
        ("when = { count = 0 }", "0 must be a whole number from 1", "0"),
        ("when = { gate = \"\" }", "cannot be a name", "\"\""),
        ("when = { gate = \"a b\" }", "cannot be a name", "\"a b\""),
        ("when = { gate = \"a\", open = 1 }", "`open` of", "1"),
        (
            "when = { readable = \"none.fifo\" }",
            "cannot open `folder/none.fifo`: No such file",
            "\"none.fifo\"",
        ),
        ("when = { event = 1 }", "`event` of", "1"),
        ("when = { period = 0 }", "must be above 0", "0"),
        ("when = { period = 1, overrun = \"wait\" }", "`overrun` of", "\"wait\""),
        ("when = { chunk_room = 1 }", "outputs with samples, and there are none", ""),
        ("when = { any_of = 1 }", "expected a list", ""),
        ("when = { any_of = [] }", "has no conditions", "[]"),
        ("when = { any_of = [{ room = 1 }] }", "`room` cannot be one of `any_of`", ""),
        ("when = { own = \"mine\" }", "there is no condition `mine`", "\"mine\""),
    ];
    for (when, message, place) in table {
        let error = read(&with(when)).err().unwrap_or_else(|| panic!("{when} is accepted"));
        assert!(error.message().contains(message), "{when}: {}", error.message());
        if !place.is_empty() {
            assert_eq!(pointed(&error), place, "{when}");
        }
    }
}
