//! The library itself: its modules, the devices that they find, its messages, and memory that it gives away.

use super::RadioRange;
use soapysdr_sys as soapy;
use std::collections::VecDeque;
use std::ffi::{CStr, c_char};
use std::sync::{Mutex, Once, PoisonError};

/// Lines that are kept of what modules write.
const KEPT: usize = 8;

static SAID: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());
static LISTENING: Once = Once::new();

/// Takes what the library would print.
pub(super) fn listen() {
    // SAFETY: the function stays for the whole time of the process, and can be called by any thread.
    LISTENING.call_once(|| unsafe { soapy::SoapySDR_registerLogHandler(Some(hear)) });
}

/// Keeps errors and warnings. Marks of single overflows come from threads that must not wait.
extern "C" fn hear(level: soapy::SoapySDRLogLevel, text: *const c_char) {
    if level > soapy::SOAPY_SDR_WARNING {
        return;
    }
    let line = text_here(text).trim().to_string();
    let mut kept = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.len() == KEPT {
        kept.pop_front();
    }
    kept.push_back(line);
}

/// Returns the lines that were written since the last call.
pub(super) fn said() -> String {
    let mut kept = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    let lines: Vec<String> = kept.drain(..).collect();
    lines.join("\n")
}

/// Arguments of the devices that modules find, such as `driver=rtlsdr, label=..., serial=1`. May take
/// seconds: some modules ask the network.
pub fn found() -> Vec<String> {
    listen();
    let mut count = 0;
    // SAFETY: the text is a constant with a zero byte, and the number outlives the call.
    let list = unsafe { soapy::SoapySDRDevice_enumerateStrArgs(c"".as_ptr(), &raw mut count) };
    if list.is_null() {
        return Vec::new();
    }
    let texts = (0..count).map(|index| {
        let one = list.wrapping_add(index);
        // SAFETY: the list has `count` elements, which the library made.
        text_of(unsafe { soapy::SoapySDRKwargs_toString(one) })
    });
    let texts = texts.collect();
    // SAFETY: the library gave the list away, and it is used nowhere after this.
    unsafe { soapy::SoapySDRKwargsList_clear(list, count) };
    texts
}

/// Names of the drivers whose modules are installed, and why a module cannot be used.
pub fn drivers() -> Vec<(String, String)> {
    listen();
    let mut count = 0;
    // SAFETY: loads each module once; it may be called at any time.
    unsafe { soapy::SoapySDR_loadModules() };
    // SAFETY: the number outlives the call.
    let paths = texts_of(unsafe { soapy::SoapySDR_listModules(&raw mut count) }, count);
    let mut drivers = vec![("null".to_string(), String::new())];
    for path in paths {
        let Ok(path_text) = std::ffi::CString::new(path) else { continue };
        // SAFETY: the text ends with a zero byte and outlives the call.
        let mut results = unsafe { soapy::SoapySDR_getLoaderResult(path_text.as_ptr()) };
        for index in 0..results.size {
            // SAFETY: there are `size` keys.
            let key = unsafe { results.keys.wrapping_add(index).read() };
            // SAFETY: there is a value for each key.
            let value = unsafe { results.vals.wrapping_add(index).read() };
            drivers.push((text_here(key), text_here(value)));
        }
        // SAFETY: the library gave the list away, and it is used nowhere after this.
        unsafe { soapy::SoapySDRKwargs_clear(&raw mut results) };
    }
    drivers
}

/// Copies a text that stays with the library.
pub(super) fn text_here(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the library's texts end with a zero byte.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Copies a text that the library gave away, and frees it.
pub(super) fn text_of(text: *mut c_char) -> String {
    let copy = text_here(text);
    // SAFETY: the library allocated it, or it is null, and it is used nowhere after this.
    unsafe { soapy::SoapySDR_free(text.cast()) };
    copy
}

/// Copies texts that the library gave away, and frees them.
pub(super) fn texts_of(mut list: *mut *mut c_char, count: usize) -> Vec<String> {
    if list.is_null() {
        return Vec::new();
    }
    // SAFETY: the list has `count` elements.
    let texts = (0..count).map(|index| text_here(unsafe { list.wrapping_add(index).read() })).collect();
    // SAFETY: the library gave the list away, and it is used nowhere after this.
    unsafe { soapy::SoapySDRStrings_clear(&raw mut list, count) };
    texts
}

/// Copies ranges that the library gave away, and frees them.
pub(super) fn ranges_of(list: *mut soapy::SoapySDRRange, count: usize) -> Vec<RadioRange> {
    if list.is_null() {
        return Vec::new();
    }
    // SAFETY: the list has `count` elements.
    let ranges =
        (0..count).map(|index| RadioRange::from(unsafe { list.wrapping_add(index).read() })).collect();
    // SAFETY: the library gave the list away, and it is used nowhere after this.
    unsafe { soapy::SoapySDR_free(list.cast()) };
    ranges
}

/// Copies the keys of descriptions that the library gave away, and frees them.
pub(super) fn keys_of(list: *mut soapy::SoapySDRArgInfo, count: usize) -> Vec<String> {
    if list.is_null() {
        return Vec::new();
    }
    let keys = (0..count).map(|index| {
        let one = list.wrapping_add(index);
        // SAFETY: the list has `count` elements, and each has a key.
        text_here(unsafe { (*one).key })
    });
    let keys = keys.collect();
    // SAFETY: the library gave the list away, and it is used nowhere after this.
    unsafe { soapy::SoapySDRArgInfoList_clear(list, count) };
    keys
}
