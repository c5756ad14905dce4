//! Closed sets of words in a record. Each enum is written in JSON, and displayed, as its word.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Defines an enum whose variants are words, with one list for JSON and for display.
macro_rules! words {
    (
        $(#[$enum_doc:meta])*
        $name:ident { $( $(#[$doc:meta])* $variant:ident = $word:tt, )+ }
    ) => {
        $(#[$enum_doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name {
            $( $(#[$doc])* #[serde(rename = $word)] $variant, )+
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self { $( Self::$variant => $word, )+ })
            }
        }
    };
}

words! {
    /// Scheduler that turned the graph into workers.
    Scheduler {
        /// One worker, deterministic order.
        Greedy = "greedy",
        /// Any operator on any worker, with stealing.
        Event = "event",
        /// One worker per core, each with its part of the graph.
        Pinned = "pinned",
        /// Every worker carries quanta through the whole stretch.
        Replicated = "replicated",
        /// Pools as the configuration names them.
        Custom = "custom",
    }
}

words! {
    /// Clock of a run.
    ClockKind {
        /// `CLOCK_MONOTONIC`.
        Real = "real",
        /// Virtual time, which the run itself advances.
        Manual = "manual",
    }
}

words! {
    /// Behaviour of a full edge.
    WhenFull {
        /// Its producer waits for room.
        Wait = "wait",
        /// The oldest message in it is dropped.
        DropOldest = "drop_oldest",
        /// The new message is dropped.
        DropNewest = "drop_newest",
        /// Only the latest message is kept.
        Latest = "latest",
        /// The run fails.
        Error = "error",
    }
}

words! {
    /// State of an operator at the end.
    OperatorState {
        /// It ended on its own, or its inputs did.
        Done = "done",
        /// The run ended first: it was still waiting for its condition.
        Waiting = "waiting",
        /// It returned an error or panicked.
        Failed = "failed",
        /// It failed, and the run continued without it.
        Isolated = "isolated",
        /// The run ended before its first step.
        NotStarted = "not started",
    }
}

words! {
    /// Kind of limit that was missed.
    MissKind {
        /// The `max_latency` of a path.
        Path = "path",
        /// The `deadline` of an operator.
        Deadline = "deadline",
    }
}

words! {
    /// Kind of change from outside.
    ChangeKind {
        /// An operator was paused.
        Paused = "paused",
        /// An operator was resumed.
        Resumed = "resumed",
        /// An operator was stopped.
        Stopped = "stopped",
        /// A parameter was set.
        Set = "set",
    }
}

words! {
    /// Kind of an operator's failure.
    FaultKind {
        /// It returned an error.
        Error = "error",
        /// It panicked.
        Panic = "panic",
        /// It did not return.
        Hang = "hang",
    }
}

words! {
    /// Reaction of the run to a failure.
    FaultAction {
        /// The run failed.
        Stopped = "stopped",
        /// The run restarted the operator.
        Restarted = "restarted",
        /// The run continued without the operator.
        Isolated = "isolated",
        /// The run waited.
        Waited = "waited",
    }
}

words! {
    /// Result of a run, in a word.
    Outcome {
        /// All streams ended.
        Ended = "ended",
        /// It was stopped on request: Ctrl-C, a time limit, the control command.
        Stopped = "stopped",
        /// An error ended it.
        Failed = "failed",
    }
}
