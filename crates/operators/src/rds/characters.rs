//! The characters of texts: the basic set of IEC 62106, annex E.

/// Characters from 0x80 on.
const UPPER: [&str; 8] = [
    "áàéèíìóòúùÑÇŞß¡Ĳ",
    "âäêëîïôöûüñçşğıĳ",
    "ªα©‰Ğěňőπ€£$←↑→↓",
    "º¹²³±İńűµ¿÷°¼½¾§",
    "ÁÀÉÈÍÌÓÒÚÙŘČŠŽÐĿ",
    "ÂÄÊËÎÏÔÖÛÜřčšžđŀ",
    "ÃÅÆŒŷÝÕØÞŊŔĆŚŹŦð",
    "ãåæœŵýõøþŋŕćśźŧ ",
];

/// The character of a code. Codes that have none, among them control codes, are blanks.
pub(super) fn character(code: u8) -> char {
    match code {
        0x24 => '¤',
        0x5e => '―',
        0x60 => '‖',
        0x7e => '¯',
        0x20..=0x7e => char::from(code),
        0x80.. => UPPER[usize::from(code - 0x80) / 16].chars().nth(usize::from(code % 16)).unwrap_or(' '),
        _ => ' ',
    }
}

/// A text of codes, without blanks at its end.
pub(super) fn text(codes: &[u8]) -> String {
    let text: String = codes.iter().map(|code| character(*code)).collect();
    text.trim_end().to_string()
}
