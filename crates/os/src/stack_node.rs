//! Placement of a thread's stack on a memory node.

use std::io;

use crate::memory::prefault_stack;

/// Brings in the next `bytes` of the calling thread's stack, on `node` if it has room (`MPOL_PREFERRED`).
/// Returns the percentage of pages that are elsewhere: the few pages that the thread has used before do not
/// move. Later allocations of the thread are not affected.
///
/// # Errors
/// What the kernel reports: `EINVAL` for a node that does not exist, `ENOSYS` if it was built without nodes.
pub fn place_stack(node: usize, bytes: usize) -> io::Result<f64> {
    let before = MemoryPolicy::of_this_thread()?;
    MemoryPolicy::prefer(node)?.set()?;
    // The number of remaining faults does not matter here.
    let _ = prefault_stack(bytes);
    before.set()?;
    elsewhere(node, bytes)
}

/// Words of a node mask: 1024 nodes, the most that Linux is built for.
const WORDS: usize = 1024 / libc::c_ulong::BITS as usize;
const BITS: libc::c_ulong = 1024;
const PREFERRED: libc::c_int = 1;

struct MemoryPolicy {
    mode: libc::c_int,
    nodes: [libc::c_ulong; WORDS],
}

impl MemoryPolicy {
    fn prefer(node: usize) -> io::Result<Self> {
        let mut policy = MemoryPolicy { mode: PREFERRED, nodes: [0; WORDS] };
        let bits = libc::c_ulong::BITS as usize;
        let word = policy.nodes.get_mut(node / bits).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("there is no memory node {node}"))
        })?;
        *word |= 1 << (node % bits);
        Ok(policy)
    }

    fn of_this_thread() -> io::Result<Self> {
        let mut policy = MemoryPolicy { mode: 0, nodes: [0; WORDS] };
        // SAFETY: the kernel writes one number to the first pointer, and as many bits to the second as it is
        // told, which it has.
        let result = unsafe {
            libc::syscall(
                libc::SYS_get_mempolicy,
                std::ptr::from_mut(&mut policy.mode),
                policy.nodes.as_mut_ptr(),
                BITS,
                std::ptr::null::<u8>(),
                0,
            )
        };
        if result == 0 { Ok(policy) } else { Err(io::Error::last_os_error()) }
    }

    fn set(&self) -> io::Result<()> {
        // The kernel uses one bit less than it is told.
        // SAFETY: the mask has as many bits as the call is told, except for the last, which is not read.
        let result =
            unsafe { libc::syscall(libc::SYS_set_mempolicy, self.mode, self.nodes.as_ptr(), BITS + 1) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// Percentage of the pages of the next `bytes` of stack that are not on `node`.
fn elsewhere(node: usize, bytes: usize) -> io::Result<f64> {
    let page = rustix::param::page_size();
    let here = std::ptr::from_ref(&page).addr();
    let last = here / page;
    let pages: Vec<usize> = (0..bytes / page).map(|down| (last - down) * page).collect();
    let mut nodes = vec![0 as libc::c_int; pages.len()];
    // SAFETY: without target nodes nothing moves: the kernel reads one list of addresses, whatever they are,
    // and writes one number for each.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            0,
            pages.len(),
            pages.as_ptr(),
            std::ptr::null::<libc::c_int>(),
            nodes.as_mut_ptr(),
            0,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let there = nodes.iter().filter(|&&found| usize::try_from(found) == Ok(node)).count();
    Ok(100.0 * (nodes.len() - there) as f64 / nodes.len().max(1) as f64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_macros, reason = "a test says what it skips")]

    use super::*;
    use crate::memory::nodes;
    use crate::thread;

    #[test]
    fn a_stack_lies_on_each_node_in_turn() {
        let nodes = nodes();
        if nodes.len() < 2 {
            eprintln!("the machine has {} memory node: only that one is asked for", nodes.len());
        }
        for node in nodes {
            let placed =
                thread::spawn("stack", move || place_stack(node, 256 << 10)).unwrap().join().unwrap();
            match placed {
                Ok(elsewhere) => {
                    assert!(elsewhere <= 20.0, "{elsewhere} % of the pages are not on node {node}");
                }
                Err(error) => eprintln!("skipped: node {node}: {error}"),
            }
        }
    }

    #[test]
    fn a_node_that_is_not_there_is_refused() {
        for node in [1023, 5000] {
            let placed = thread::spawn("stack", move || place_stack(node, 64 << 10)).unwrap().join().unwrap();
            assert!(placed.is_err(), "{node}");
        }
    }
}
