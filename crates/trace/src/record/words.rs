//! The closed sets of words in a record. Each enum is written in JSON, and displayed, as its word.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An enum whose variants are words: one list for JSON and for display.
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
    /// The recipe that turned the graph into workers.
    Scheduler {
        /// One worker, deterministic order.
        Greedy = "greedy",
        /// Any operator on any worker, with stealing.
        Event = "event",
        /// One worker per core, each with its part of the graph.
        Pinned = "pinned",
        /// Every worker carries quanta through the whole stretch.
        Replicated = "replicated",
        /// As the configuration names the pools.
        Custom = "custom",
    }
}

words! {
    /// Which clock a run went by.
    ClockKind {
        /// `CLOCK_MONOTONIC`.
        Real = "real",
        /// Virtual time, which the run itself moves on.
        Manual = "manual",
    }
}

words! {
    /// What a full edge does.
    WhenFull {
        /// Its producer waits for room.
        Wait = "wait",
        /// The oldest message in it goes.
        DropOldest = "drop_oldest",
        /// The message that comes goes.
        DropNewest = "drop_newest",
        /// Only the latest message is kept.
        Latest = "latest",
        /// The run fails.
        Error = "error",
    }
}

words! {
    /// What became of an operator.
    OperatorState {
        /// It ended by itself, or its inputs did.
        Done = "done",
        /// The run ended before it did: it still waited for its condition.
        Waiting = "waiting",
        /// It returned an error or panicked.
        Failed = "failed",
        /// It failed, and the run went on without it.
        Isolated = "isolated",
        /// The run ended before its first step.
        NotStarted = "not started",
    }
}

words! {
    /// Which limit was missed.
    MissKind {
        /// The `max_latency` of a path.
        Path = "path",
        /// The `deadline` of an operator.
        Deadline = "deadline",
    }
}

words! {
    /// What was changed from outside.
    ChangeKind {
        /// An operator was paused.
        Paused = "paused",
        /// An operator went on.
        Resumed = "resumed",
        /// An operator was stopped.
        Stopped = "stopped",
        /// A parameter was set.
        Set = "set",
    }
}

words! {
    /// How an operator failed.
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
    /// What the run did about an operator that failed.
    FaultAction {
        /// It failed with it.
        Stopped = "stopped",
        /// It started the operator anew.
        Restarted = "restarted",
        /// It went on without the operator.
        Isolated = "isolated",
        /// It waited.
        Waited = "waited",
    }
}

words! {
    /// How a run ended, in a word.
    Outcome {
        /// All streams ended by themselves.
        Ended = "ended",
        /// Somebody asked for it: Ctrl-C, a time limit, the control command.
        Stopped = "stopped",
        /// An error ended it.
        Failed = "failed",
    }
}
