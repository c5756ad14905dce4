//! Functions, operators and constants of formulas.

use super::program::{FormulaStep, holds};

/// A function by its name.
#[derive(Clone, Copy)]
pub(super) enum FormulaFunction {
    One(fn(f64) -> f64),
    Two(fn(f64, f64) -> f64),
    /// Two arguments or more, from the left to the right.
    Several(fn(f64, f64) -> f64),
    /// `clamp(x, low, high)`.
    Clamp,
    /// `if(condition, then, else)`.
    If,
}

impl FormulaFunction {
    /// Least and most number of arguments.
    pub fn arguments(self) -> (usize, usize) {
        match self {
            FormulaFunction::One(_) => (1, 1),
            FormulaFunction::Two(_) => (2, 2),
            FormulaFunction::Several(_) => (2, usize::MAX),
            FormulaFunction::Clamp | FormulaFunction::If => (3, 3),
        }
    }
}

pub(super) fn constant(name: &str) -> Option<f64> {
    (name == "pi").then_some(std::f64::consts::PI)
}

fn truth(is_true: bool) -> f64 {
    f64::from(u8::from(is_true))
}

pub(super) fn smaller(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) }
}

pub(super) fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

fn sign(x: f64) -> f64 {
    if x == 0.0 || x.is_nan() { x } else { x.signum() }
}

/// All functions.
pub(super) const FUNCTIONS: [(&str, FormulaFunction); 30] = {
    use FormulaFunction::{Clamp, If, One, Several, Two};
    [
        ("sin", One(f64::sin)),
        ("cos", One(f64::cos)),
        ("tan", One(f64::tan)),
        ("asin", One(f64::asin)),
        ("acos", One(f64::acos)),
        ("atan", One(f64::atan)),
        ("atan2", Two(f64::atan2)),
        ("sinh", One(f64::sinh)),
        ("cosh", One(f64::cosh)),
        ("tanh", One(f64::tanh)),
        ("exp", One(f64::exp)),
        ("log", One(f64::ln)),
        ("ln", One(f64::ln)),
        ("log2", One(f64::log2)),
        ("log10", One(f64::log10)),
        ("sqrt", One(f64::sqrt)),
        ("cbrt", One(f64::cbrt)),
        ("hypot", Two(f64::hypot)),
        ("pow", Two(f64::powf)),
        ("abs", One(f64::abs)),
        ("sign", One(sign)),
        ("floor", One(f64::floor)),
        ("ceil", One(f64::ceil)),
        ("round", One(f64::round_ties_even)),
        ("trunc", One(f64::trunc)),
        ("isnan", One(|x| truth(x.is_nan()))),
        ("min", Several(smaller)),
        ("max", Several(larger)),
        ("clamp", Clamp),
        ("if", If),
    ]
};

/// An operator between two operands: how tightly it binds, and its step.
pub(super) fn infix(sign: &str) -> Option<(u8, FormulaStep)> {
    use FormulaStep::Binary;
    Some(match sign {
        "||" => (1, Binary(|a, b| truth(holds(a) || holds(b)))),
        "&&" => (2, Binary(|a, b| truth(holds(a) && holds(b)))),
        "==" => (COMPARISON, Binary(|a, b| truth(a == b))),
        "!=" => (COMPARISON, Binary(|a, b| truth(a != b))),
        "<" => (COMPARISON, Binary(|a, b| truth(a < b))),
        "<=" => (COMPARISON, Binary(|a, b| truth(a <= b))),
        ">" => (COMPARISON, Binary(|a, b| truth(a > b))),
        ">=" => (COMPARISON, Binary(|a, b| truth(a >= b))),
        "+" => (4, FormulaStep::Add),
        "-" => (4, FormulaStep::Subtract),
        "*" => (5, FormulaStep::Multiply),
        "/" => (5, FormulaStep::Divide),
        "%" => (5, Binary(|a, b| a % b)),
        "^" => (POWER, Binary(f64::powf)),
        _ => return None,
    })
}

/// How tightly comparisons bind.
pub(super) const COMPARISON: u8 = 3;
/// How tightly a sign before an operand binds: less than a power, more than a product.
pub(super) const PREFIX: u8 = 6;
/// How tightly a power binds.
pub(super) const POWER: u8 = 7;

/// An operator before an operand.
pub(super) fn prefix(sign: &str) -> Option<FormulaStep> {
    Some(match sign {
        "-" => FormulaStep::Unary(|x| -x),
        "+" => FormulaStep::Unary(|x| x),
        "!" => FormulaStep::Unary(|x| truth(!holds(x))),
        _ => return None,
    })
}
