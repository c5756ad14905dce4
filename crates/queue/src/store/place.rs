//! The distance between the blocks of a store.

/// Bytes of addresses that a processor compares first to order its loads and stores.
const PAGE: usize = 4096;

/// Distances of two neighbours, less whole pages. A loop that reads one block and writes another has a load
/// next to each store, some lines ahead of it. If both addresses have the same last 12 bits, the processor
/// takes the load for one of the value just stored, and waits. With 128 bytes, which is the distance when
/// only a head follows a round number, every tenth pair of blocks took two to four times as long (AMD Zen 4,
/// vectors of 64 bytes; the book's page on nanoseconds has a table). With the distances below, blocks up to
/// six places apart differ by half a KiB or more.
const APART: [usize; 4] = [1152, 1792, 2304, 2944];

/// Bytes between a large block and the next one. A processor that reads sequentially prefetches lines beyond
/// the end, and takes the first lines of the next block from another core that writes there. With 2560 bytes,
/// a core with less work, which follows closely behind the core before it, slowed that core by a third
/// (chunks of 16 KiB, five operators on two cores).
const BETWEEN: usize = 8192;

/// Size from which a block is large. Smaller ones gain nothing from that much space; where one core reads a
/// block and writes the next, they lost 2 per cent (8 KiB, half that space).
const LARGE: usize = 4 * PAGE;

/// Returns the least number of bytes after a block of `bytes` bytes.
const fn behind(bytes: usize) -> usize {
    if bytes >= LARGE { BETWEEN } else { bytes / 4 }
}

/// Returns the bytes from one block to the next, with a head of `head` bytes each: the least that has room
/// for both and for [`behind`], and is one of [`APART`] more than whole pages. Blocks that fill less than
/// three quarters of a page are packed closely: two neighbours are apart anyway.
pub(super) const fn stride(head: usize, bytes: usize) -> usize {
    let close = head + bytes.next_multiple_of(64);
    if close <= APART[APART.len() - 1] {
        return close;
    }
    let least = close + behind(bytes);
    let (pages, over) = (least - least % PAGE, least % PAGE);
    let mut at = 0;
    while at < APART.len() {
        if over <= APART[at] {
            return pages + APART[at];
        }
        at += 1;
    }
    pages + PAGE + APART[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_are_near_are_apart_within_a_page() {
        let mut seen = std::collections::BTreeSet::new();
        for bytes in (3 * PAGE / 4..20 * PAGE).step_by(8) {
            let (head, stride) = (128, stride(128, bytes));
            let between = stride - (head + bytes);
            assert!(stride.is_multiple_of(64), "{bytes}");
            let least = if bytes < 16384 { bytes / 4 } else { 8192 };
            assert!(between >= least, "{bytes}: {between}");
            assert!(between < least + 2432, "{bytes}: no more is given for it than it takes");
            for places in 1..=6 {
                let over = places * stride % PAGE;
                assert!((512..=PAGE - 512).contains(&over), "{bytes}: {over} at {places} places");
            }
            seen.insert(stride % PAGE);
        }
        assert_eq!(seen.len(), APART.len());
    }

    #[test]
    fn small_blocks_lie_close() {
        assert_eq!(stride(128, 1), 192);
        assert_eq!(stride(128, 1024), 1152);
        assert_eq!(stride(128, 2816), 2944);
        assert_eq!(stride(128, 4096), 4096 + 1152);
    }
}
