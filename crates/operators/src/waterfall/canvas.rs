//! A pixel canvas with rectangles and text in a small font.

/// Red, green, blue.
pub(super) type Colour = [u8; 3];

pub(super) const BLACK: Colour = [0; 3];

/// Cell of a letter in pixels, with the gap to the next one.
pub(super) const ADVANCE: usize = 6 * SCALE;
pub(super) const HEIGHT: usize = 7 * SCALE;
/// Pixels of the picture per pixel of the font.
const SCALE: usize = 2;

pub(super) struct Canvas {
    pub width: usize,
    pub height: usize,
    pub pixels: Vec<u8>,
}

impl Canvas {
    /// Creates a white canvas.
    pub fn new(width: usize, height: usize) -> Self {
        Canvas { width, height, pixels: vec![255; width * height * 3] }
    }

    /// Fills a rectangle; parts outside the canvas are cut off.
    pub fn fill(&mut self, (x, y): (usize, usize), (width, height): (usize, usize), colour: Colour) {
        for row in y..(y + height).min(self.height) {
            for column in x..(x + width).min(self.width) {
                let at = (row * self.width + column) * 3;
                self.pixels[at..at + 3].copy_from_slice(&colour);
            }
        }
    }

    /// Draws text in black, with its upper left corner at `x`, `y`. A character that is missing in the font
    /// is a blank.
    pub fn text(&mut self, x: usize, y: usize, text: &str) {
        for (place, letter) in text.chars().enumerate() {
            for (row, bits) in glyph(letter).into_iter().enumerate() {
                for column in (0..5).filter(|column| bits >> (4 - column) & 1 == 1) {
                    let at = (x + place * ADVANCE + column * SCALE, y + row * SCALE);
                    self.fill(at, (SCALE, SCALE), BLACK);
                }
            }
        }
    }
}

/// Seven rows of five pixels, the left one in bit 4.
fn glyph(letter: char) -> [u8; 7] {
    match letter {
        '0' => [0b01110, 0b10001, 0b10011, 0b10101, 0b11001, 0b10001, 0b01110],
        '1' => [0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110],
        '2' => [0b01110, 0b10001, 0b00001, 0b00110, 0b01000, 0b10000, 0b11111],
        '3' => [0b11111, 0b00010, 0b00100, 0b00010, 0b00001, 0b10001, 0b01110],
        '4' => [0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010],
        '5' => [0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110],
        '6' => [0b00110, 0b01000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110],
        '7' => [0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b01000, 0b01000],
        '8' => [0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110],
        '9' => [0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00010, 0b01100],
        '-' => [0, 0, 0, 0b11111, 0, 0, 0],
        '.' => [0, 0, 0, 0, 0, 0b01100, 0b01100],
        'k' => [0b10000, 0b10000, 0b10010, 0b10100, 0b11000, 0b10100, 0b10010],
        'M' => [0b10001, 0b11011, 0b10101, 0b10101, 0b10001, 0b10001, 0b10001],
        'G' => [0b01110, 0b10001, 0b10000, 0b10111, 0b10001, 0b10001, 0b01111],
        'H' => [0b10001, 0b10001, 0b10001, 0b11111, 0b10001, 0b10001, 0b10001],
        'z' => [0, 0, 0b11111, 0b00010, 0b00100, 0b01000, 0b11111],
        's' => [0, 0, 0b01111, 0b10000, 0b01110, 0b00001, 0b11110],
        'd' => [0b00001, 0b00001, 0b01111, 0b10001, 0b10001, 0b10001, 0b01111],
        'B' => [0b11110, 0b10001, 0b10001, 0b11110, 0b10001, 0b10001, 0b11110],
        _ => [0; 7],
    }
}
