//! Pictures and video.

use super::*;

/// Frames from an array, and back to real samples.
pub fn images(folder: &Path) {
    let path = folder.join("film.npy");
    let frame = |n: usize| ([32, 48, 0], (0..32 * 48).map(|at| (at * n % 256) as f32).collect());
    let frames = Feed::frames((1..8).map(frame));
    Trial::new(NpySink::<f32>::new(&path)).feed("in", frames).run();

    // Small frames are so quick that the other threads of the run may still be starting.
    let mut steady = Steady::after::<Chunk<f32>>(10 * WARM_UP, "images", 2 * CHUNKS);
    let graph = &mut steady.graph;
    graph.add("film", NpySource::<f32>::new(path).repeat(2 * CHUNKS as u64 / 7 + 20));
    graph.add("bytes", PerFrame::new(ToBytes::new()));
    graph.add("blur", PerFrame::new(Blur::new()));
    graph.add("level", InPlace::new(Threshold::new(100).unwrap()));
    graph.add("small", PerFrame::new(Reduce::new(3).unwrap()));
    graph.add("real", PerFrame::new(FromBytes::new()));
    let chain = ["film", "bytes", "blur", "level", "small", "real", "watch"];
    steady.connect(&chain.array_windows().map(|[from, to]| (*from, *to)).collect::<Vec<_>>());
    steady.run();
}

/// Video of a file and into one, in colour. (Resizing allocates its weights.)
pub fn video(folder: &Path) {
    let path = folder.join("film.y4m");
    let mut file = b"YUV4MPEG2 W48 H32 F25:1 C420jpeg\n".to_vec();
    for n in 0..7 {
        file.extend_from_slice(b"FRAME\n");
        file.extend((0..48 * 48).map(|at| (at * n % 251) as u8));
    }
    std::fs::write(&path, file).unwrap();

    let mut steady = Steady::after::<Chunk<u8>>(10 * WARM_UP, "video", 2 * CHUNKS);
    let graph = &mut steady.graph;
    let film = Y4mSource::new(path, VideoFormat::Rgb).pace(Pace::Fast);
    graph.add("film", film.repeat(2 * CHUNKS as u64 / 7 + 20));
    graph.add("part", PerFrame::new(Crop::new(2, 3, 28, 40).unwrap()));
    let weights = vec![vec![-1.0, 0.0, 1.0]; 3];
    graph.add("edges", PerFrame::new(Convolve::new(&weights, None, 128.0).unwrap()));
    let (matrix, range) = (ColourMatrix::Bt601, ColourRange::Full);
    let grey = Recolour::new(ColourSpace::Rgb, ColourSpace::Grey, matrix, range).unwrap();
    graph.add("grey", PerFrame::new(grey));
    graph.add("copy", Y4mSink::new(folder.join("copy.y4m")));
    let chain = ["film", "part", "edges", "grey", "watch"];
    steady.connect(&chain.array_windows().map(|[from, to]| (*from, *to)).collect::<Vec<_>>());
    steady.connect(&[("edges", "copy")]);
    steady.run();
}
