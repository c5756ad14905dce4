//! Formulas as they are evaluated.

/// Numbers that are computed together.
pub(super) const BLOCK: usize = 64;

/// One number for each of a run of samples or messages.
pub(super) type Lane = [f64; BLOCK];

/// A step of an evaluation, on a stack of lanes.
#[derive(Debug, Clone, Copy)]
pub(super) enum FormulaStep {
    Constant(f64),
    /// Pushes the variable of this number.
    Variable(usize),
    Add,
    Subtract,
    Multiply,
    Divide,
    /// Replaces the top.
    Unary(fn(f64) -> f64),
    /// Replaces the two topmost by one.
    Binary(fn(f64, f64) -> f64),
    /// Replaces condition, then and else by one of the last two.
    Choose,
}

/// A formula in the order of its evaluation. Evaluating it allocates nothing.
#[derive(Debug, Clone, Default)]
pub(super) struct FormulaProgram {
    steps: Vec<FormulaStep>,
    stack: Vec<Lane>,
    /// Lanes on the stack after the steps so far.
    depth: usize,
}

/// Whether a number counts as true.
pub(super) fn holds(x: f64) -> bool {
    x != 0.0 && !x.is_nan()
}

impl FormulaProgram {
    /// Appends a step.
    pub fn push(&mut self, step: FormulaStep) {
        match step {
            FormulaStep::Constant(_) | FormulaStep::Variable(_) => self.depth += 1,
            FormulaStep::Unary(_) => {}
            FormulaStep::Choose => self.depth -= 2,
            _ => self.depth -= 1,
        }
        if self.depth > self.stack.len() {
            self.stack.push([0.0; BLOCK]);
        }
        self.steps.push(step);
    }

    /// Whether the formula contains a variable.
    pub fn has(&self, variable: usize) -> bool {
        self.steps.iter().any(|step| matches!(step, FormulaStep::Variable(number) if *number == variable))
    }

    /// Evaluates the formula for the first `count` numbers of each variable, and returns the results.
    pub fn evaluate(&mut self, variables: &[Lane], count: usize) -> &[f64] {
        let mut top = 0;
        for &step in &self.steps {
            let (below, above) = self.stack.split_at_mut(top);
            match step {
                FormulaStep::Constant(number) => above[0][..count].fill(number),
                FormulaStep::Variable(number) => {
                    above[0][..count].copy_from_slice(&variables[number][..count]);
                }
                FormulaStep::Unary(function) => {
                    below[top - 1][..count].iter_mut().for_each(|x| *x = function(*x));
                    continue;
                }
                FormulaStep::Choose => {
                    let [condition, then, otherwise] = &mut below[top - 3..] else { continue };
                    for ((condition, then), otherwise) in
                        condition.iter_mut().zip(then).zip(otherwise).take(count)
                    {
                        *condition = if holds(*condition) { *then } else { *otherwise };
                    }
                    top -= 2;
                    continue;
                }
                binary => {
                    let [a, b] = &mut below[top - 2..] else { continue };
                    apply(binary, &mut a[..count], &b[..count]);
                    top -= 1;
                    continue;
                }
            }
            top += 1;
        }
        &self.stack[0][..count]
    }
}

fn apply(step: FormulaStep, a: &mut [f64], b: &[f64]) {
    let pairs = a.iter_mut().zip(b);
    match step {
        FormulaStep::Add => pairs.for_each(|(a, b)| *a += b),
        FormulaStep::Subtract => pairs.for_each(|(a, b)| *a -= b),
        FormulaStep::Multiply => pairs.for_each(|(a, b)| *a *= b),
        FormulaStep::Divide => pairs.for_each(|(a, b)| *a /= b),
        FormulaStep::Binary(function) => pairs.for_each(|(a, b)| *a = function(*a, *b)),
        _ => {}
    }
}
