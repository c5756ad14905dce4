//! What several sinks say at the end of a run, in the same words.

use onbeat_runtime::Context;
use std::path::Path;

/// A file was not made, because there was nothing to write.
pub(crate) fn nothing_came(cx: &mut Context, path: &Path) {
    cx.note(format!("nothing came, so there is no {}", path.display()));
}

/// `count` samples of pictures were not finite; says nothing of none.
pub(crate) fn lowest_colour(cx: &mut Context, count: u64) {
    if count > 0 {
        cx.note(format!("{count} samples were not finite and have the lowest colour"));
    }
}
