//! Notes that several sinks share.

use onbeat_runtime::Context;
use std::path::Path;

/// Notes that a file was not created because no input arrived.
pub(crate) fn nothing_came(cx: &mut Context, path: &Path) {
    cx.note(format!("no input arrived, so {} was not created", path.display()));
}

/// Notes that `count` samples of pictures were not finite; no note if `count` is 0.
pub(crate) fn lowest_colour(cx: &mut Context, count: u64) {
    if count > 0 {
        cx.note(format!("{count} samples were not finite and were drawn in the lowest colour"));
    }
}
