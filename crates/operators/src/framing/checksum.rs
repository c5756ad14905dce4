//! Checksums by their names in the catalogue of CRCs.

use crate::check;
use crc::{Algorithm, Crc, NoTable};
use onbeat_runtime::Error;

/// A cyclic redundancy check.
#[derive(Debug, Clone, Copy)]
pub(super) struct Checksum {
    /// As in the catalogue (Greg Cook, *Catalogue of parametrised CRC algorithms*).
    name: &'static str,
    bytes: usize,
    /// Whether bits are reflected; then the least significant byte is sent first.
    is_reflected: bool,
    of: fn(&[u8]) -> u32,
}

/// The checksums of some algorithms of one width.
macro_rules! checksums {
    ($($word:ty: $($algorithm:ident $name:literal),+;)+) => {
        &[$($({
            const ALGORITHM: &Algorithm<$word> = &crc::$algorithm;
            const CRC: Crc<$word, NoTable> = Crc::<$word, NoTable>::new(ALGORITHM);
            Checksum {
                name: $name,
                bytes: (ALGORITHM.width as usize).div_ceil(8),
                is_reflected: ALGORITHM.refin,
                of: |bytes| u32::from(CRC.checksum(bytes)),
            }
        }),+),+]
    };
}

const ALL: &[Checksum] = checksums!(
    u8: CRC_8_SMBUS "CRC-8/SMBUS", CRC_8_MAXIM_DOW "CRC-8/MAXIM-DOW", CRC_8_AUTOSAR "CRC-8/AUTOSAR",
        CRC_8_SAE_J1850 "CRC-8/SAE-J1850", CRC_8_DVB_S2 "CRC-8/DVB-S2", CRC_8_ROHC "CRC-8/ROHC",
        CRC_8_I_432_1 "CRC-8/I-432-1", CRC_8_NRSC_5 "CRC-8/NRSC-5", CRC_8_BLUETOOTH "CRC-8/BLUETOOTH";
    u16: CRC_16_IBM_3740 "CRC-16/IBM-3740", CRC_16_IBM_SDLC "CRC-16/IBM-SDLC", CRC_16_KERMIT "CRC-16/KERMIT",
        CRC_16_XMODEM "CRC-16/XMODEM", CRC_16_MODBUS "CRC-16/MODBUS", CRC_16_ARC "CRC-16/ARC", CRC_16_CMS "CRC-16/CMS",
        CRC_16_USB "CRC-16/USB", CRC_16_GENIBUS "CRC-16/GENIBUS", CRC_16_GSM "CRC-16/GSM", CRC_16_DNP "CRC-16/DNP",
        CRC_16_EN_13757 "CRC-16/EN-13757", CRC_16_SPI_FUJITSU "CRC-16/SPI-FUJITSU", CRC_16_UMTS "CRC-16/UMTS",
        CRC_16_MCRF4XX "CRC-16/MCRF4XX", CRC_16_T10_DIF "CRC-16/T10-DIF", CRC_16_LJ1200 "CRC-16/LJ1200",
        CRC_16_PROFIBUS "CRC-16/PROFIBUS", CRC_16_DECT_X "CRC-16/DECT-X", CRC_16_NRSC_5 "CRC-16/NRSC-5";
    u32: CRC_24_OPENPGP "CRC-24/OPENPGP", CRC_24_BLE "CRC-24/BLE", CRC_24_LTE_A "CRC-24/LTE-A",
        CRC_32_ISO_HDLC "CRC-32/ISO-HDLC", CRC_32_BZIP2 "CRC-32/BZIP2", CRC_32_MPEG_2 "CRC-32/MPEG-2",
        CRC_32_ISCSI "CRC-32/ISCSI", CRC_32_CKSUM "CRC-32/CKSUM", CRC_32_JAMCRC "CRC-32/JAMCRC";
);

/// Names that programs use besides those of the catalogue.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("CRC-8", "CRC-8/SMBUS"),
    ("CRC-16", "CRC-16/ARC"),
    ("CRC-16/CCITT-FALSE", "CRC-16/IBM-3740"),
    ("CRC-16/X-25", "CRC-16/IBM-SDLC"),
    ("CRC-16/CCITT", "CRC-16/KERMIT"),
    ("CRC-32", "CRC-32/ISO-HDLC"),
    ("CRC-32C", "CRC-32/ISCSI"),
];

impl Checksum {
    /// The checksum of this name, in either case; none for `none`.
    pub fn named(name: &str) -> Result<Option<Self>, Error> {
        if name.eq_ignore_ascii_case("none") {
            return Ok(None);
        }
        let other = OTHER_NAMES.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        let name_there = other.map_or(name, |(_, there)| there);
        let found = ALL.iter().find(|checksum| checksum.name.eq_ignore_ascii_case(name_there));
        found.copied().map(Some).ok_or_else(|| {
            let names: Vec<&str> = ALL.iter().map(|checksum| checksum.name).collect();
            Error::new(format!(
                "`crc` is `{}`: it must be `none` or one of {}",
                check::shown(name),
                names.join(", ")
            ))
        })
    }

    /// Number of its bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the checksum `sent` is that of `frame`.
    pub fn holds(&self, frame: &[u8], sent: &[u8]) -> bool {
        let digits =
            |bytes: &mut dyn Iterator<Item = &u8>| bytes.fold(0, |all, byte| all << 8 | u32::from(*byte));
        let sent = if self.is_reflected { digits(&mut sent.iter().rev()) } else { digits(&mut sent.iter()) };
        (self.of)(frame) == sent
    }
}
