//! Named pools, for `custom`.

use super::{PARTS, PoolSpec, Thread, Workers, check_workers};
use crate::base::options::{Options, Pool};
use crate::base::wording::nearest;
use crate::graph::Graph;
use crate::plan::GraphError;
use onbeat_os::thread::NAME_MAX_BYTES;
use onbeat_trace::record::Obtained;

/// Pool of the operators that no other pool names.
const DEFAULT: &str = "default";

/// Bytes of a thread's name for the name of its pool. A number follows if the pool has several threads.
const NAME_BYTES: usize = NAME_MAX_BYTES - 3;

fn wrong(pool: &Pool, key: &'static str, text: String) -> GraphError {
    GraphError::Pool { pool: pool.name.clone(), key, operator: None, text }
}

/// Error for pools next to a scheduler that makes its own.
pub(super) fn misplaced(options: &Options) -> GraphError {
    let text = format!(
        "`{}` makes its own pools: choose `scheduler = \"custom\"`, or leave the pools out",
        options.scheduler
    );
    GraphError::Pool { pool: options.pools[0].name.clone(), key: "name", operator: None, text }
}

pub(super) fn custom(graph: &Graph, order: &[usize], options: &Options) -> Result<Workers, GraphError> {
    if options.pools.is_empty() {
        let text = "`custom` runs the pools that are named, and there is none: write one as [[pool]], with `name` and `operators`";
        return Err(GraphError::Cores(text.to_string()));
    }
    let names: Vec<&str> = order.iter().map(|&place| graph.operators[place].name.as_str()).collect();
    let mut pool_of: Vec<Option<usize>> = vec![None; names.len()];
    for (number, pool) in options.pools.iter().enumerate() {
        check(pool, &options.pools[..number])?;
        for wanted in &pool.operators {
            assign(wanted, number, &names, &mut pool_of, &options.pools)?;
        }
    }
    let mut pools = options.pools.clone();
    let mut notes = Vec::new();
    let rest: Vec<&str> =
        names.iter().zip(&pool_of).filter(|(_, pool)| pool.is_none()).map(|(name, _)| *name).collect();
    if !rest.is_empty() {
        notes.push(said(&rest));
        let Options { cores, workers, .. } = options;
        pools.push(Pool {
            name: DEFAULT.to_string(),
            cores: cores.clone(),
            workers: *workers,
            ..Pool::default()
        });
    }
    let last = pools.len() - 1;
    let pool_of: Vec<usize> = pool_of.into_iter().map(|pool| pool.unwrap_or(last)).collect();
    let mut workers = Workers {
        threads: Vec::new(),
        part_of: vec![usize::MAX; names.len()],
        pool_of: Vec::new(),
        pools: Vec::new(),
        obtained: Vec::new(),
        notes,
        waves: Vec::new(),
        lanes: Vec::new(),
    };
    for (number, pool) in pools.iter().enumerate() {
        let members: Vec<usize> = (0..names.len()).filter(|&operator| pool_of[operator] == number).collect();
        workers.add(number, pool, &members, options)?;
    }
    Ok(workers)
}

/// Note that some operators are in no pool.
fn said(rest: &[&str]) -> String {
    const SHOWN: usize = 8;
    let mut shown: Vec<String> = rest.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    if rest.len() > SHOWN {
        shown.push(format!("{} more", rest.len() - SHOWN));
    }
    format!("in no pool, so in the pool `{DEFAULT}`: {}", shown.join(", "))
}

fn check(pool: &Pool, before: &[Pool]) -> Result<(), GraphError> {
    let Pool { name, cores, workers, operators, .. } = pool;
    if name.is_empty()
        || name.contains(|c: char| matches!(c, '.' | '/') || c.is_whitespace() || c.is_control())
    {
        let text = format!(
            "`{}` cannot name a pool: a name has at least one character, and no `.`, `/` or blank",
            name.escape_debug()
        );
        return Err(wrong(pool, "name", text));
    }
    if name.len() > NAME_BYTES {
        let text = format!(
            "the pool name `{name}` has {} bytes: its threads have it too, and the kernel keeps {NAME_BYTES} of it; shorten it",
            name.len()
        );
        return Err(wrong(pool, "name", text));
    }
    if name == DEFAULT {
        let text = format!("no pool can be called `{DEFAULT}`: it is where operators go that are in no pool");
        return Err(wrong(pool, "name", text));
    }
    if before.iter().any(|other| other.name == *name) {
        return Err(wrong(pool, "name", format!("two pools are called `{name}`: names are unique")));
    }
    if operators.is_empty() {
        let text = format!(
            "the pool `{name}` has no operators: name them, as in operators = [\"iq\"], or leave it out"
        );
        return Err(wrong(pool, "operators", text));
    }
    check_workers(cores, *workers, &format!("pool `{name}`: "))
        .map_err(|text| wrong(pool, if cores.is_empty() { "workers" } else { "cores" }, text))
}

/// Puts an operator, or all operators of a subgraph, into a pool.
fn assign(
    wanted: &str,
    number: usize,
    names: &[&str],
    pool_of: &mut [Option<usize>],
    pools: &[Pool],
) -> Result<(), GraphError> {
    let wrong = |text: String| {
        let (pool, operator) = (pools[number].name.clone(), Some(wanted.to_string()));
        GraphError::Pool { pool, key: "operators", operator, text }
    };
    let inside = format!("{wanted}/");
    let mut found = false;
    for (operator, name) in names.iter().enumerate() {
        if *name != wanted && !name.starts_with(&inside) {
            continue;
        }
        found = true;
        match pool_of[operator].replace(number) {
            None => {}
            Some(other) if other == number => {
                return Err(wrong(format!(
                    "the pool `{}` names the operator `{name}` twice",
                    pools[number].name
                )));
            }
            Some(other) => {
                return Err(wrong(format!(
                    "operator `{name}` is in two pools, `{}` and `{}`: an operator is in one",
                    pools[other].name, pools[number].name
                )));
            }
        }
    }
    if found {
        return Ok(());
    }
    let hint = nearest(wanted, names.iter().copied());
    Err(wrong(format!(
        "pool `{}`: there is no operator `{}`{hint}",
        pools[number].name,
        wanted.escape_debug()
    )))
}

impl Workers {
    /// Adds a pool with its workers and parts. `members` are operator numbers, in order.
    fn add(
        &mut self,
        number: usize,
        pool: &Pool,
        members: &[usize],
        options: &Options,
    ) -> Result<(), GraphError> {
        let cores: Vec<Option<usize>> = match pool.cores.as_slice() {
            [] => vec![None; pool.workers.unwrap_or(1)],
            cores => cores.iter().copied().map(Some).collect(),
        };
        let asked = cores.len();
        if asked > PARTS {
            let text = format!("the pool `{}` has {asked} workers: there may be {PARTS} at most", pool.name);
            return Err(wrong(pool, "workers", text));
        }
        let used = asked.min(members.len());
        if used < asked {
            self.obtained.push(Obtained {
                what: format!("workers of pool {}", pool.name),
                asked: asked.to_string(),
                obtained: used.to_string(),
                reason: Some(format!("it has only {used} operators to share out")),
            });
        }
        for (place, core) in cores.into_iter().take(used).enumerate() {
            let name = if used == 1 { pool.name.clone() } else { format!("{}-{place}", pool.name) };
            self.threads.push(Thread { name, core, pool: number });
        }
        let parts = if used == 1 { 1 } else { members.len().min(PARTS) };
        let first = self.pool_of.len();
        for (place, &operator) in members.iter().enumerate() {
            self.part_of[operator] = first + place * parts / members.len();
        }
        self.pool_of.extend(std::iter::repeat_n(number, parts));
        self.pools.push(PoolSpec {
            name: pool.name.clone(),
            policy: pool.policy.or(options.policy),
            idle: pool.idle.unwrap_or(options.idle),
        });
        Ok(())
    }
}
