//! Additional kernel events in a trace: `-e SYSTEM:EVENT`, each with the `--filter` and `--trigger` that
//! follow it.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, error::ErrorKind};
use onbeat_noise::extra::EventRequest;

/// Events in command-line order. Parsed by hand, because only the order assigns a filter or trigger to an
/// event.
#[derive(Debug, Clone, Default)]
pub struct EventArguments {
    pub events: Vec<EventRequest>,
}

impl Args for EventArguments {
    fn augment_args(command: Command) -> Command {
        let many = |name: &'static str| {
            Arg::new(name).long(name).action(ArgAction::Append).allow_hyphen_values(true)
        };
        command
            .arg(
                many("event")
                    .short('e')
                    .value_name("SYSTEM[:EVENT]")
                    .value_parser(EventRequest::parse)
                    .help("Add these kernel events to the trace; repeatable"),
            )
            .arg(many("filter").value_name("FILTER").help("Filter for the preceding -e, e.g. 'prev_pid == 0'"))
            .arg(many("trigger").value_name("TRIGGER").help(
                "Kernel trigger for the preceding -e: stacktrace, or hist:keys=FIELD, whose counts are written to \
                 SYSTEM_EVENT_hist.txt",
            ))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for EventArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let places = |name: &str| matches.indices_of(name).into_iter().flatten();
        let asked = matches.get_many::<EventRequest>("event").into_iter().flatten().cloned();
        let mut events: Vec<(usize, EventRequest)> = places("event").zip(asked).collect();
        for name in ["filter", "trigger"] {
            let texts = matches.get_many::<String>(name).into_iter().flatten();
            for (place, text) in places(name).zip(texts) {
                let Some((_, event)) = events.iter_mut().rfind(|(at, _)| *at < place) else {
                    let why = format!("--{name} {text}: it must follow the -e that it applies to\n");
                    return Err(Error::raw(ErrorKind::MissingRequiredArgument, why));
                };
                let slot = if name == "filter" { &mut event.filter } else { &mut event.trigger };
                if slot.replace(text.clone()).is_some() {
                    let why =
                        format!("--{name} {text}: the preceding -e already has a {name}: repeat that -e\n");
                    return Err(Error::raw(ErrorKind::ArgumentConflict, why));
                }
            }
        }
        Ok(EventArguments { events: events.into_iter().map(|(_, event)| event).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &[&str]) -> Result<Vec<String>, String> {
        let command = EventArguments::augment_args(Command::new("x").no_binary_name(true));
        let matches = command.try_get_matches_from(line).map_err(|error| error.to_string())?;
        let events = EventArguments::from_arg_matches(&matches).map_err(|error| error.to_string())?.events;
        let text = |event: &EventRequest| {
            format!("{}:{:?} {:?} {:?}", event.system, event.name, event.filter, event.trigger)
        };
        Ok(events.iter().map(text).collect())
    }

    #[test]
    fn filters_and_triggers_belong_to_the_preceding_event() {
        let line = [
            "-e",
            "irq",
            "--filter",
            "irq == 4",
            "-e",
            "sched:sched_switch",
            "--trigger",
            "stacktrace",
            "--filter",
            "a == 1",
        ];
        assert_eq!(
            read(&line).unwrap(),
            [
                "irq:None Some(\"irq == 4\") None",
                "sched:Some(\"sched_switch\") Some(\"a == 1\") Some(\"stacktrace\")"
            ]
        );
        for (line, part) in [
            (&["--filter", "x", "-e", "irq"][..], "it must follow the -e"),
            (&["-e", "irq", "--filter", "x", "--filter", "y"], "already has a filter"),
            (&["-e", "a/b"], "SYSTEM:EVENT"),
        ] {
            assert!(read(line).unwrap_err().contains(part), "{line:?}");
        }
    }
}
