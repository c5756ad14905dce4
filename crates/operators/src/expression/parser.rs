//! From the text of a formula to its program, by operator precedence.

use super::functions::{
    COMPARISON, FUNCTIONS, FormulaFunction, POWER, PREFIX, constant, infix, larger, prefix, smaller,
};
use super::program::{FormulaProgram, FormulaStep};
use super::tokens::{FormulaToken, token, wrong};
use onbeat_runtime::Error;

/// Deepest nesting of parentheses, signs and powers. The parser calls itself that often.
const DEEPEST: usize = 100;

/// Compiles a formula over these variables.
pub(super) fn compile(formula: &str, variables: &[&str]) -> Result<FormulaProgram, Error> {
    let (next, begin, end) = token(formula, 0)?;
    let program = FormulaProgram::default();
    let mut parser = FormulaParser { formula, variables, next, begin, end, depth: 0, program };
    parser.expression(0)?;
    match parser.next {
        FormulaToken::End => Ok(parser.program),
        FormulaToken::Sign(")") => Err(parser.wrong("there is no `(` for this")),
        FormulaToken::Sign(",") => Err(parser.wrong("a comma belongs between the arguments of a function")),
        _ => Err(parser.wrong("an operator such as `+` or `*` must come before this")),
    }
}

struct FormulaParser<'f> {
    formula: &'f str,
    variables: &'f [&'f str],
    /// The token in hand, and the bytes at which it begins and ends.
    next: FormulaToken<'f>,
    begin: usize,
    end: usize,
    depth: usize,
    program: FormulaProgram,
}

impl FormulaParser<'_> {
    fn wrong(&self, why: &str) -> Error {
        wrong(self.formula, self.begin, why)
    }

    fn advance(&mut self) -> Result<(), Error> {
        (self.next, self.begin, self.end) = token(self.formula, self.end)?;
        Ok(())
    }

    /// Takes this sign, if it is the next token.
    fn takes(&mut self, sign: &str) -> Result<bool, Error> {
        let is_it = matches!(self.next, FormulaToken::Sign(next) if next == sign);
        if is_it {
            self.advance()?;
        }
        Ok(is_it)
    }

    /// Reads operands, and the operators between them that bind at least this tightly.
    fn expression(&mut self, least: u8) -> Result<(), Error> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.wrong(&format!("it is nested more than {DEEPEST} deep")));
        }
        self.operand()?;
        let mut has_compared = false;
        while let FormulaToken::Sign(sign) = self.next
            && let Some((binds, step)) = infix(sign)
            && binds >= least
        {
            if binds == COMPARISON && std::mem::replace(&mut has_compared, true) {
                return Err(self.wrong("comparisons cannot follow each other: write `a < b && b < c`"));
            }
            has_compared &= binds >= COMPARISON;
            self.advance()?;
            // A power takes the powers after it into its exponent, which can have a sign: `a ^ -b ^ c`.
            self.expression(if binds == POWER { PREFIX } else { binds + 1 })?;
            self.program.push(step);
        }
        self.depth -= 1;
        Ok(())
    }

    fn operand(&mut self) -> Result<(), Error> {
        match self.next {
            FormulaToken::Number(number) => {
                self.program.push(FormulaStep::Constant(number));
                self.advance()
            }
            FormulaToken::Name(name) => self.name(name),
            FormulaToken::Sign("(") => {
                self.advance()?;
                self.expression(0)?;
                if self.takes(")")? { Ok(()) } else { Err(self.wrong("a `)` is missing before this")) }
            }
            FormulaToken::Sign(sign) if let Some(step) = prefix(sign) => {
                self.advance()?;
                self.expression(PREFIX)?;
                self.program.push(step);
                Ok(())
            }
            _ => Err(self.wrong("a number, a name or `(` must come here")),
        }
    }

    fn name(&mut self, name: &str) -> Result<(), Error> {
        if let Some(number) = self.variables.iter().position(|known| *known == name) {
            self.program.push(FormulaStep::Variable(number));
            return self.advance();
        }
        if let Some(number) = constant(name) {
            self.program.push(FormulaStep::Constant(number));
            return self.advance();
        }
        let Some((_, function)) = FUNCTIONS.into_iter().find(|(known, _)| *known == name) else {
            let functions: Vec<&str> = FUNCTIONS.iter().map(|(name, _)| *name).collect();
            return Err(self.wrong(&format!(
                "unknown name; there are the variables {}, the constant pi and the functions {}",
                self.variables.join(", "),
                functions.join(", ")
            )));
        };
        let place = self.begin;
        self.advance()?;
        if !self.takes("(")? {
            return Err(self.wrong(&format!("`{name}` is a function: a `(` must come here")));
        }
        self.arguments(name, function, place)
    }

    fn arguments(&mut self, name: &str, function: FormulaFunction, place: usize) -> Result<(), Error> {
        let (least, most) = function.arguments();
        let mut count = 0;
        if !self.takes(")")? {
            loop {
                self.expression(0)?;
                count += 1;
                match function {
                    FormulaFunction::Several(fold) if count > 1 => {
                        self.program.push(FormulaStep::Binary(fold));
                    }
                    FormulaFunction::Clamp if count == 2 => self.program.push(FormulaStep::Binary(larger)),
                    FormulaFunction::Clamp if count == 3 => self.program.push(FormulaStep::Binary(smaller)),
                    _ => {}
                }
                if self.takes(")")? {
                    break;
                }
                if count == most || !self.takes(",")? {
                    let what = if count == most { "`)`" } else { "`,` or `)`" };
                    return Err(self.wrong(&format!("{what} must come here, in the arguments of `{name}`")));
                }
            }
        }
        if count < least {
            let why = format!("`{name}` has {count} arguments: it needs {least}");
            return Err(wrong(self.formula, place, &why));
        }
        match function {
            FormulaFunction::One(function) => self.program.push(FormulaStep::Unary(function)),
            FormulaFunction::Two(function) => self.program.push(FormulaStep::Binary(function)),
            FormulaFunction::If => self.program.push(FormulaStep::Choose),
            FormulaFunction::Several(_) | FormulaFunction::Clamp => {}
        }
        Ok(())
    }
}
