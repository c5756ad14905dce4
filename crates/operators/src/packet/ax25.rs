//! The fields of an AX.25 frame.

/// An address and the bits beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Station {
    /// The call sign, with the SSID after a hyphen unless it is 0.
    pub name: String,
    /// Command or response bit of the sender and receiver; "has been repeated" of a digipeater.
    pub is_marked: bool,
}

/// A frame of AX.25, version 2.2, with control fields of 8 bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ax25Frame<'d> {
    pub to: Station,
    pub from: Station,
    pub via: Vec<Station>,
    pub control: u8,
    /// Protocol of the information, in frames that carry it.
    pub pid: Option<u8>,
    pub info: &'d [u8],
}

/// Most addresses: receiver, sender and eight digipeaters.
const MOST_ADDRESSES: usize = 10;

/// Bytes of an address.
const ADDRESS: usize = 7;

impl<'d> Ax25Frame<'d> {
    /// Reads a frame without its check sequence. `None` if its addresses are not those of AX.25.
    pub fn read(bytes: &'d [u8]) -> Option<Self> {
        let last = bytes.chunks_exact(ADDRESS).take(MOST_ADDRESSES).position(|field| field[6] & 1 == 1)?;
        let (addresses, rest) = bytes.split_at((last + 1) * ADDRESS);
        let mut stations = addresses.chunks_exact(ADDRESS).map(station);
        let (to, from) = (stations.next()??, stations.next()??);
        let via = stations.collect::<Option<Vec<_>>>()?;
        let (&control, mut info) = rest.split_first()?;
        let mut pid = None;
        // Information frames, and unnumbered information.
        if control & 1 == 0 || control & 0xef == 0x03 {
            let (&first, rest) = info.split_first()?;
            (pid, info) = (Some(first), rest);
        }
        Some(Ax25Frame { to, from, via, control, pid, info })
    }

    /// Name of the type of the frame.
    pub fn kind(&self) -> &'static str {
        match self.control {
            control if control & 1 == 0 => "I",
            control if control & 3 == 1 => ["RR", "RNR", "REJ", "SREJ"][usize::from(control >> 2 & 3)],
            control => match control & 0xef {
                0x03 => "UI",
                0x0f => "DM",
                0x2f => "SABM",
                0x43 => "DISC",
                0x63 => "UA",
                0x6f => "SABME",
                0x87 => "FRMR",
                0xaf => "XID",
                0xe3 => "TEST",
                _ => "U",
            },
        }
    }

    /// Number of the frame, of an information frame.
    pub fn send_number(&self) -> Option<u8> {
        (self.control & 1 == 0).then_some(self.control >> 1 & 7)
    }

    /// Number of the frame expected next, of an information or supervisory frame.
    pub fn receive_number(&self) -> Option<u8> {
        (self.control & 3 != 3).then_some(self.control >> 5)
    }
}

/// Reads an address: six characters, padded with spaces, and the SSID.
fn station(field: &[u8]) -> Option<Station> {
    let (&last, characters) = field.split_last()?;
    if characters.iter().any(|byte| byte & 1 == 1) {
        return None;
    }
    let name: String = characters.iter().map(|byte| char::from(byte >> 1)).collect();
    let name = name.trim_end_matches(' ');
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()) {
        return None;
    }
    let name = match last >> 1 & 15 {
        0 => name.to_string(),
        ssid => format!("{name}-{ssid}"),
    };
    Some(Station { name, is_marked: last & 0x80 != 0 })
}
