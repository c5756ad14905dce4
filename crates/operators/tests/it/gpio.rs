//! GPIO lines without a chip: what is said of parameters and of a chip that is not there. `ci/devices` tries
//! lines.
#![forbid(unsafe_code)]

use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Trial};

/// The error of parameters.
fn refused(kind: &str, parameters: &str) -> String {
    registry().operator(kind, parameters).err().map_or_else(String::new, |error| error.to_string())
}

#[test]
fn a_line_is_given_once() {
    for kind in ["gpio.source", "gpio.sink"] {
        for (parameters, text) in [
            ("", "nothing says which line"),
            ("chip = \"gpiochip0\"", "nothing says which line"),
            (
                "chip = \"\\u0000\"\noffset = 3",
                "`chip` is `\\0`: it has 1 to 255 bytes; give a name such as `gpiochip0`",
            ),
            ("offset = 3", "`offset` is 3: give the `chip`, too"),
            ("chip = \"gpiochip0\"\noffset = 3\nline = \"LED\"", "`offset` and `line` both say which line"),
        ] {
            let error = refused(kind, parameters);
            assert!(error.contains(text), "{kind} {parameters}: {error}");
        }
        assert_eq!(refused(kind, "line = \"LED\""), "");
        assert_eq!(refused(kind, "chip = \"/dev/gpiochip1\"\noffset = 0"), "");
    }
    let error = refused("gpio.source", "line = \"LED\"\ndebounce = \"0 s\"");
    assert!(error.contains("`debounce` is 0 s"), "{error}");
}

#[test]
fn a_chip_that_is_not_there_is_named() {
    let parameters = "chip = \"gpiochip987\"\noffset = 3";
    let error = Trial::kind(&registry(), "gpio.source", parameters).keep::<f64>("out").failure();
    let text = "cannot use line 3 of /dev/gpiochip987: there is no /dev/gpiochip987; ";
    assert!(error.contains(text), "{error}");
    let looked = registry().operator("gpio.source", parameters).unwrap().check().unwrap_err();
    assert!(error.contains(&looked.to_string()), "{looked}");
    let trial = Trial::kind(&registry(), "gpio.sink", "line = \"no such line here\"");
    let error = trial.feed("in", Feed::messages(vec![1.0])).failure();
    let text = "cannot use line no such line here: no line has this name; `gpioinfo` lists all; ";
    assert!(error.contains(text), "{error}");
}
