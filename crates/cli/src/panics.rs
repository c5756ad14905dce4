//! A panic in an operator is an error of the run, told once: with the name of the operator, by the engine.

use std::panic;
use std::sync::{Mutex, PoisonError};

/// Where the last operator panicked.
static LAST: Mutex<Option<String>> = Mutex::new(None);

/// Workers say nothing when they panic; everybody else does as ever.
pub fn install() {
    let usual = panic::take_hook();
    let told = std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0");
    panic::set_hook(Box::new(move |panic| {
        let is_worker = std::thread::current().name().is_some_and(|name| name.starts_with("onbeat-w"));
        if is_worker {
            *LAST.lock().unwrap_or_else(PoisonError::into_inner) = panic.location().map(ToString::to_string);
        }
        if !is_worker || told {
            // What is told has to be seen, and not on a screen that is about to go.
            crate::screen::give_back();
            usual(panic);
        }
    }));
}

/// Where the last operator panicked, if one did.
pub fn last() -> Option<String> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_place_of_a_worker_s_panic_is_kept() {
        super::install();
        let thread =
            onbeat_os::thread::spawn("onbeat-w9", || panic!("as it was meant to")).expect("a thread");
        assert!(thread.join().is_err());
        assert!(super::last().is_some_and(|place| place.contains("panics.rs")));
    }
}
