//! How far apart the blocks of a store lie.

/// Of a processor, for its loads and stores: it compares this much of their addresses first.
const PAGE: usize = 4096;

/// What the distance of two neighbours may be, less whole pages. A loop that reads one block and writes another has a load next to each
/// store, some lines ahead of it. Where both addresses are alike in their last 12 bits the processor takes the load for one of what was
/// just stored, and waits: with 128 bytes, which is what a head alone makes of a round number, every tenth pair of blocks took twice to
/// four times as long (AMD Zen 4, vectors of 64 bytes; the book's page on nanoseconds has a table). With these, blocks up to six places
/// from each other are half a KiB or more apart.
const APART: [usize; 4] = [1152, 1792, 2304, 2944];

/// So much lies between a large block and the next one. A processor that reads on and on asks for lines ahead, also beyond the end, and
/// takes the next block's first ones from another core that writes there: with 2560 bytes a core that had less to do than the one before
/// it, and so was close behind that, made it a third slower (chunks of 16 KiB, five operators on two cores).
const BETWEEN: usize = 8192;

/// From so many bytes on a block is large. Smaller ones gain nothing from so much between them, and where one core reads one and writes
/// the next they lost 2 per cent (8 KiB, half as much between them).
const LARGE: usize = 4 * PAGE;

/// Least number of bytes behind a block of so many.
const fn behind(bytes: usize) -> usize {
    if bytes >= LARGE { BETWEEN } else { bytes / 4 }
}

/// Bytes from one block to the next, with a head of so many bytes each: the least that has room for both, and what is to be
/// [`behind`] them, and is of these. Blocks that fill less than three quarters of a page lie close: two neighbours are apart as it is.
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
