//! How much memory there is.

/// Bytes of memory that the machine has, as `sysinfo(2)` counts them: all of it, whoever uses it.
///
/// ```
/// assert!(onbeat_os::memory::total_bytes() > 1 << 20);
/// ```
#[must_use]
pub fn total_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    // Both are unsigned long: 32 bits on some machines.
    #[allow(clippy::unnecessary_cast, reason = "of another width elsewhere")]
    (info.totalram as u64).saturating_mul(u64::from(info.mem_unit).max(1))
}
