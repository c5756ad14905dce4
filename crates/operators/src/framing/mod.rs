//! Frames in a stream of soft bits: a sync word, a length, bytes, a checksum.
//!
//! | type | kind | description |
//! |---|---|---|
//! | [`FrameDecode`] | `frame.decode` | finds frames, checks them, and writes each as a line of JSON |

mod checksum;
mod search;
mod whitening;

pub use whitening::Whitening;

use crate::found::FindingSearch;
use checksum::Checksum;
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Input, Kind, Operator, Output, Registry, Step, operator,
};
use schemars::JsonSchema;
use search::{SyncSearch, SyncWord};
use serde::{Deserialize, Serialize};

/// Which bits a sync word may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Polarity {
    /// As it is written.
    #[default]
    Normal,
    /// All bits inverted.
    Inverted,
    /// Either; then those of the frame are inverted as well.
    Either,
}

/// Which bit of a byte comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BitOrder {
    /// The most significant one.
    #[default]
    Msb,
    /// The least significant one.
    Lsb,
}

/// Most bytes of a frame.
const MOST_BYTES: u32 = 8192;

/// Finds frames by their sync word, and writes each as a line of JSON.
///
#[doc = include_str!("../about/frame_decode.md")]
#[derive(Operator)]
#[operator(
    name = "frame.decode",
    summary = "frames with a sync word and a checksum, as lines of JSON",
    about = include_str!("../about/frame_decode.md"),
    prepare = Self::prepare,
)]
pub struct FrameDecode {
    /// Soft bits: above 0 for a 1.
    pub input: Input<Chunk<f32>>,
    /// One line per frame, without a line break.
    pub out: Output<String>,
    /// The sync word, from 8 to 64 bits: hexadecimal digits, or bits as `0b1101...`; the first bit is sent
    /// first.
    #[parameter(example = "2dd4")]
    sync: String,
    /// Most bits of the sync word that may be wrong.
    #[parameter(default = 0, max = 16)]
    sync_errors: u32,
    /// Whether the bits are `normal`, `inverted`, or `either`, by the sync word.
    #[parameter(default)]
    polarity: Polarity,
    /// Which bit of a byte comes first, `msb` or `lsb`.
    #[parameter(default)]
    bit_order: BitOrder,
    /// What the sender added to all bits behind the sync word: `none`, `pn9` or `ccsds`.
    #[parameter(default)]
    whitening: Whitening,
    /// Bytes between the sync word and the checksum, if they are always as many.
    #[parameter(max = 8192, example = 16)]
    length: Option<u32>,
    /// Place of the byte that has the length, 0 for the first one; give either `length` or `length_at`.
    #[parameter(max = 255)]
    length_at: Option<u32>,
    /// Number of bytes of the length, 1 or 2; the more significant one comes first.
    #[parameter(default = 1, min = 1, max = 2)]
    length_bytes: u32,
    /// What the length does not count: bytes between the sync word and the checksum are the length and this.
    #[parameter(default = 1, min = -255, max = 255)]
    length_adds: i32,
    /// Most bytes between the sync word and the checksum; where the length says more, there is no frame.
    #[parameter(default = 255, min = 1, max = 8192)]
    longest: u32,
    /// The checksum behind the frame: `none`, or a name of the catalogue of CRCs, such as `CRC-16/IBM-3740`.
    #[parameter(default = "none")]
    crc: String,
    /// Whether to send frames with a wrong checksum too. Otherwise they are counted.
    #[parameter(default = false)]
    wrong: bool,
    form: Option<FrameForm>,
    search: FindingSearch<SyncSearch>,
}

/// What a frame looks like.
#[derive(Debug, Clone, Copy)]
struct FrameForm {
    sync: SyncWord,
    polarity: Polarity,
    bit_order: BitOrder,
    whitening: Whitening,
    length: FrameLength,
    longest: usize,
    checksum: Option<Checksum>,
    wrong: bool,
}

/// Number of bytes between the sync word and the checksum.
#[derive(Debug, Clone, Copy)]
enum FrameLength {
    Fixed(usize),
    /// In these bytes, which say by how many it is larger.
    Field {
        at: usize,
        bytes: usize,
        adds: i64,
    },
}

impl FrameDecode {
    fn prepare(&mut self) -> Result<(), Error> {
        self.form = Some(self.form()?);
        Ok(())
    }

    fn form(&self) -> Result<FrameForm, Error> {
        let length = match (self.length, self.length_at) {
            (Some(0), _) => return Err(Error::new("`length` is 0: it must be from 1 to 8192")),
            (Some(length), None) => FrameLength::Fixed(length as usize),
            (None, Some(at)) => {
                let bytes = self.length_bytes as usize;
                FrameLength::Field { at: at as usize, bytes, adds: self.length_adds.into() }
            }
            (Some(_), Some(_)) => {
                return Err(Error::new("has both `length` and `length_at`: give one of them"));
            }
            (None, None) => {
                return Err(Error::new(
                    "needs `length`, or `length_at` if a byte of the frame has the length",
                ));
            }
        };
        let longest = self.length.unwrap_or(self.longest).min(MOST_BYTES) as usize;
        Ok(FrameForm {
            sync: SyncWord::read(&self.sync, self.sync_errors)?,
            polarity: self.polarity,
            bit_order: self.bit_order,
            whitening: self.whitening,
            length,
            longest,
            checksum: Checksum::named(&self.crc)?,
            wrong: self.wrong,
        })
    }
}

#[operator]
impl Operator for FrameDecode {
    fn rate_behind(&mut self, _: f64) -> Result<Option<f64>, Error> {
        Ok(None)
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.search = FindingSearch::default();
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let FrameDecode { input, out, search, form, .. } = self;
        let make = |rate_hz| {
            let form = form.ok_or_else(|| Error::new("the operator was not prepared"))?;
            Ok(SyncSearch::new(form, rate_hz))
        };
        search.step(input, out, make, cx)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        self.search.say(cx, ending);
        Ok(())
    }
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    registry.add(Kind::operator::<FrameDecode>());
}
