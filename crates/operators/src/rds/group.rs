//! Groups of four blocks.

/// A block that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RdsBlock {
    pub word: u16,
    /// Bits that were corrected.
    pub corrected: u32,
}

/// A group. Blocks that are lost are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct RdsGroup {
    pub blocks: [Option<RdsBlock>; 4],
    /// Time of its first symbol, in seconds.
    pub time_s: f64,
    /// Share of wrong blocks among the last ones.
    pub wrong_share: f64,
}

/// Type of a group: a number from 0 to 15, and whether its version is B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupType {
    pub number: u16,
    pub is_b: bool,
}

impl RdsGroup {
    /// The information of a block.
    pub fn word(&self, place: usize) -> Option<u16> {
        self.blocks[place].map(|block| block.word)
    }

    /// Bits that were corrected.
    pub fn corrected(&self) -> u32 {
        self.blocks.iter().flatten().map(|block| block.corrected).sum()
    }

    /// Type of the group, if its second block came.
    pub fn group_type(&self) -> Option<GroupType> {
        self.word(1).map(|word| GroupType { number: word >> 12, is_b: word >> 11 & 1 == 1 })
    }

    /// Identification of the programme: the first block, and the third one in groups of version B.
    pub fn programme(&self) -> Option<u16> {
        let third = || self.word(2).filter(|_| self.group_type().is_some_and(|of| of.is_b));
        self.word(0).or_else(third)
    }

    /// The four blocks in hexadecimal digits, as RDS Spy writes them. A lost block is `----`.
    pub fn hex(&self) -> String {
        let one = |block: &Option<RdsBlock>| match block {
            Some(block) => format!("{:04X}", block.word),
            None => "----".to_string(),
        };
        self.blocks.each_ref().map(one).join(" ")
    }
}
