//! Operators that compute one frame from one frame.

use onbeat_runtime::{Chunk, Context, Error, Info, Input, Operator, Output, Ports, Sample, Stamp, Step, Tag};

/// A filter without memory of earlier frames: each frame depends on the one that comes, and on parameters.
pub trait FrameFilter: Clone + Send + 'static {
    /// Type of an input sample.
    type In: Sample;
    /// Type of an output sample.
    type Out: Sample;

    /// Returns the shape of the result for a frame of this shape, and prepares for such frames.
    ///
    /// # Errors
    /// If the filter cannot work on such a frame: the text names the shape and the fix.
    fn shape(&mut self, shape: [u32; 3]) -> Result<[u32; 3], Error>;

    /// Computes a frame of the shape that was last prepared for. `output` has the samples of the result.
    fn filter(&mut self, input: &[Self::In], output: &mut [Self::Out]);

    /// Returns where the sample with this number in the frame went, as a number in the result. The default is
    /// the same place.
    fn place(&self, sample: usize) -> usize {
        sample
    }
}

/// An operator made of a [`FrameFilter`]: it sends one frame for each that it takes, with the same stamp and
/// tags.
///
/// Rate and position of the samples are those of the input, times the ratio of the frames' lengths, so the
/// number of frames per second stays the same. Positions have gaps if frames have different sizes and a
/// result is not as long as its frame. Replicas share a stream frame by frame.
pub struct PerFrame<F: FrameFilter> {
    /// Frames in.
    pub input: Input<Chunk<F::In>>,
    /// Frames out.
    pub out: Output<Chunk<F::Out>>,
    filter: F,
    /// Shapes of the last frame and of its result.
    shapes: Option<([u32; 3], [u32; 3])>,
    held: Option<Chunk<F::In>>,
    stamp: Stamp,
}

impl<F: FrameFilter> PerFrame<F> {
    /// Makes an operator with the ports `in` and `out`.
    pub fn new(filter: F) -> Self {
        PerFrame {
            input: Input::default(),
            out: Output::default(),
            filter,
            shapes: None,
            held: None,
            stamp: Stamp::default(),
        }
    }

    /// Shape of the result for a frame.
    fn shape(&mut self, frame: &Chunk<F::In>) -> Result<[u32; 3], Error> {
        let shape = frame.info().shape;
        if let Some((last, result)) = self.shapes
            && last == shape
        {
            return Ok(result);
        }
        if samples(shape).is_some_and(|count| count != frame.len()) {
            return Err(Error::new(format!(
                "a frame of its input has {} samples, but its shape {shape:?} has another number: correct \
                 the operator that sends it",
                frame.len()
            )));
        }
        let result = self.filter.shape(shape)?;
        self.shapes = Some((shape, result));
        Ok(result)
    }

    fn send(&mut self, cx: &mut Context, frame: &Chunk<F::In>, to: Chunk<F::Out>) -> Result<(), Error> {
        let shape = self.shape(frame)?;
        let (from, mut to) = (frame.info(), to);
        let count = samples(shape).unwrap_or(frame.len());
        if count > to.capacity() {
            return Err(Error::new(format!(
                "a result has {count} samples, and the quantum of its edge has room for {}; give the edge \
                 from `out` `quantum = {}` or more",
                to.capacity(),
                count * size_of::<F::Out>()
            )));
        }
        to.truncate(count);
        if let Some((output, info)) = to.parts() {
            self.filter.filter(frame, output);
            self.mark(from, info, (frame.len(), count), shape);
        }
        cx.set_stamp(self.stamp);
        self.out.push(cx, to)
    }

    /// Writes the head of a result.
    fn mark(&self, from: &Info, info: &mut Info, (before, after): (usize, usize), shape: [u32; 3]) {
        let (long, short) = (before.max(1) as u64, after as u64);
        info.start = from.start / long * short + (from.start % long).min(short);
        info.rate_hz = from.rate_hz * short as f64 / long as f64;
        info.shape = shape;
        let place = |tag: &Tag| Tag { offset: self.filter.place(tag.offset), ..tag.clone() };
        info.tags.extend(from.tags.iter().map(place));
        info.tags.sort_by_key(|tag| tag.offset);
    }
}

/// Samples of a frame; `None` for a plain run of samples.
fn samples(shape: [u32; 3]) -> Option<usize> {
    let used = shape.iter().take_while(|&&length| length > 0);
    (shape[0] > 0).then(|| used.map(|&length| length as usize).product())
}

impl<F: FrameFilter> Operator for PerFrame<F> {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out).fresh();
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.held.is_none() {
            self.held = self.input.pop(cx);
            self.stamp = cx.stamp();
        }
        if self.held.is_none() {
            return Ok(Step::Wait);
        }
        let Some(to) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        if let Some(frame) = self.held.take() {
            self.send(cx, &frame, to)?;
        }
        Ok(Step::Wait)
    }

    fn frame_behind(&self, frame: Option<[u32; 3]>) -> Result<Option<[u32; 3]>, Error> {
        frame.map(|shape| self.filter.clone().shape(shape)).transpose()
    }

    fn restart(&mut self, _: &mut Context) -> Result<(), Error> {
        (self.held, self.shapes) = (None, None);
        Ok(())
    }

    fn replica(&self) -> Option<Box<dyn Operator>> {
        Some(Box::new(PerFrame::new(self.filter.clone())))
    }
}
