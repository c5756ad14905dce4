//! Cameras without a device: messages about parameters and about a device that is not there. `ci/camera`
//! tries a device. The latest frame of a stream.
#![forbid(unsafe_code)]

use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Trial};
use onbeat_runtime::{Overrides, Pipeline};
use std::time::{Duration, Instant};

/// The error of parameters.
fn refused(parameters: &str) -> String {
    registry().operator("v4l2.source", parameters).err().map_or_else(String::new, |error| error.to_string())
}

#[test]
fn parameters_are_checked() {
    for (parameters, text) in [
        ("size = \"640\"", "`size` is `640`: write columns and rows"),
        ("size = \"0x480\"", "`size` is `0x480`"),
        ("rate = \"0 Hz\"", "`rate` is 0"),
        ("buffers = 1", "`buffers` is 1: it must be from 2 to 32"),
        ("device = \"\"", "`device` is empty"),
        ("pixels = \"h264\"", "h264"),
        ("format = \"ycbcr\"", "ycbcr"),
        ("controls = { Gain = 1.5 }", "1.5"),
    ] {
        let error = refused(parameters);
        assert!(error.contains(text), "{parameters}: {error}");
    }
    for parameters in [
        "",
        "device = \"HD Webcam\"\nsize = \"1280x720\"\nrate = \"30 Hz\"\npixels = \"mjpeg\"\nformat = \"grey\"",
        "input = \"1\"\nbuffers = 32\ncontrols = { Gain = 10, Brightness = -3 }\nmatrix = \"bt709\"\nrange = \"full\"",
    ] {
        assert_eq!(refused(parameters), "", "{parameters}");
    }
}

#[test]
fn a_device_that_is_not_there_is_named() {
    for (device, text) in [
        ("/dev/video987", "cannot open /dev/video987: there is no such device; "),
        ("No such camera", "cannot use No such camera: there is no camera of this name; "),
        ("/dev/null", "cannot open /dev/null: it is not a video device; "),
        ("/proc/self/stat", "cannot open /proc/self/stat: it is not a video device; "),
    ] {
        let parameters = format!("device = \"{device}\"");
        let error = Trial::kind(&registry(), "v4l2.source", &parameters).failure();
        assert!(error.contains(text), "{device}: {error}");
    }
}

#[test]
fn a_tap_passes_frames_on() {
    let frames = [0, 8, 16].map(|first| ([2, 4, 0], (first..first + 8).collect::<Vec<u8>>()));
    let seen = Trial::kind(&registry(), "tap.image", "").feed("in", Feed::frames(frames)).run();
    assert_eq!(seen.samples::<u8>("out"), (0..24).collect::<Vec<u8>>());
    assert_eq!(seen.lengths("out"), [8, 8, 8]);
}

/// A film of one frame, again and again, and a tap at its end.
const VIEW: &str = r#"
name = "view"
[[operator]]
name = "film"
kind = "y4m.source"
path = "film.y4m"
format = "FORMAT"
repeat = 0
[[operator]]
name = "view"
kind = "tap.image"
[[edge]]
from = "film"
to = "view"
"#;

#[test]
fn the_latest_frame_is_a_png_picture() {
    let folder = tempfile::tempdir().unwrap();
    let luma: Vec<u8> = (0..12).map(|at| 20 * at).collect();
    let film = [b"YUV4MPEG2 W4 H3 F100:1 Cmono XCOLORRANGE=FULL\nFRAME\n".as_slice(), &luma].concat();
    std::fs::write(folder.path().join("film.y4m"), film).unwrap();
    for (format, colour, channels) in
        [("grey", png::ColorType::Grayscale, 1), ("rgb", png::ColorType::Rgb, 3)]
    {
        let text = VIEW.replace("FORMAT", format);
        let overrides = Overrides::default();
        let pipeline = Pipeline::parse(&text, "view.toml", folder.path(), &registry(), &overrides).unwrap();
        let run = pipeline.start().unwrap();
        let handle = run.handle();
        let begin = Instant::now();
        let (media_type, file) = loop {
            match handle.fetch("view") {
                Ok(fetched) => break fetched,
                Err(error) => {
                    assert_eq!(error.to_string(), "operator `view`: no frame has come yet: try again");
                    assert!(begin.elapsed() < Duration::from_secs(60), "{error}");
                }
            }
        };
        let error = handle.fetch("film").unwrap_err().to_string();
        assert!(error.starts_with("operator `film`: there is nothing to fetch from it"), "{error}");
        let error = handle.fetch("veiw").unwrap_err().to_string();
        assert_eq!(error, "there is no operator `veiw`: did you mean `view`?");
        handle.stop();
        run.wait().unwrap();
        assert!(handle.fetch("view").is_err());
        assert_eq!(media_type, "image/png");
        let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height, info.color_type), (4, 3, colour));
        let expected: Vec<u8> = luma.iter().flat_map(|&level| vec![level; channels]).collect();
        assert_eq!(pixels, expected);
    }
}
