//! Ports and parameters of an operator from the fields of its struct.
//!
//! [`macro@Operator`] reads the fields. [`macro@operator`] puts what it found into an implementation of
//! `Operator`, `Map`, `Kernel` or `Combine`. Both are re-exported by the crate `onbeat`, which shows them
//! with examples in the chapter "Writing an operator" of the book.
#![forbid(unsafe_code)]

mod attributes;
mod declared;
mod fields;
mod methods;

use proc_macro::TokenStream;
use syn::{DeriveInput, ItemImpl, parse_macro_input};

/// Implements `Declared`: the ports and parameters of an operator, read from its fields.
///
/// - A field of type `Input<_>` or `Output<_>`, or a `Vec` of these, is a port. Its name is that of the
///   field; `input` and `output` are called `in` and `out`, and those of a `Vec` are numbered: `in0`, `in1`.
///   `#[port(name = "x", optional, fresh, holds = 8, many = Merge::Arrival)]` sets what the methods of the
///   same names set on a port.
/// - A field with `#[parameter(...)]` is a parameter, described by its comment. `default = value` makes it
///   optional; a text is read like one in a file (`default = "20 ms"`), and `default` alone takes the
///   `Default` of the type. `min`, `max`, `above` and `below` limit it, again with units. `settable` lets it
///   change during a run; an `Option` then gets a value. `example = value` is its value in the example of the
///   kind. `input` and `output` make a path begin at the folder of input files, or at that of output files.
/// - All other fields are state, and begin with their `Default`.
///
/// `#[operator(name = "x", summary = "...", about = EXPRESSION, prepare = Self::function)]` on the struct
/// gives the name of the kind (default: that of the struct, in lower case), its summary of one line (default:
/// the first paragraph of the struct's comment), what a user must know (default: the rest of the comment), and
/// a function that is called when an operator has been made and after each change of a parameter. It computes
/// what depends on several parameters, and can refuse them: `fn(&mut Self) -> Result<(), Error>`.
#[proc_macro_derive(Operator, attributes(operator, parameter, port))]
pub fn derive_operator(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    declared::implementation(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Adds the methods that follow from the fields to an implementation of `Operator` (`ports`, `settable` and
/// `set`), or of `Map`, `Kernel` or `Combine` (`settable` and `change`). Methods that are there stay.
#[proc_macro_attribute]
pub fn operator(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as ItemImpl);
    methods::completed(&arguments.into(), item).unwrap_or_else(|error| error.to_compile_error()).into()
}
