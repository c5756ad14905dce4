//! Guards: refuse settings that would hang a machine, and point out likely mistakes.

use super::{GraphError, PoolPlan, WorkerPlan};
use crate::base::idle::Idle;
use crate::base::options::Options;
use onbeat_os::interrupts::{self, InterruptThread};
use onbeat_os::{CoreSet, Policy, memory};

/// State of the machine that the guards check in addition to the plan.
pub(super) struct Ground {
    pub isolated: CoreSet,
    pub interrupts: Vec<InterruptThread>,
    pub moves_locked_pages: bool,
}

pub(super) fn check(
    pools: &[PoolPlan],
    workers: &[WorkerPlan],
    options: &Options,
) -> Result<Vec<String>, GraphError> {
    if !pools.iter().any(|pool| pool.policy.is_some_and(|policy| policy.is_real_time())) {
        return Ok(Vec::new());
    }
    let ground = Ground {
        isolated: CoreSet::isolated(),
        interrupts: interrupts::threads(),
        moves_locked_pages: memory::moves_locked_pages(),
    };
    check_on(&ground, pools, workers, options)
}

fn check_on(
    ground: &Ground,
    pools: &[PoolPlan],
    workers: &[WorkerPlan],
    options: &Options,
) -> Result<Vec<String>, GraphError> {
    let mut notes = Vec::new();
    for pool in pools {
        let Some(policy) = pool.policy.filter(Policy::is_real_time) else { continue };
        let wrong = |key, text| GraphError::Pool { pool: pool.name.clone(), key, operator: None, text };
        let name = &pool.name;
        if policy.priority() == Some(99) {
            return Err(wrong(
                "policy",
                format!(
                    "pool `{name}`: priority 99 is that of the kernel's own watchdogs and migration; use 98 or less"
                ),
            ));
        }
        let cores: Vec<Option<usize>> = pool.workers.iter().map(|&worker| workers[worker].core).collect();
        if let (Some(_), Idle::Spin, false) = (policy.priority(), pool.idle, options.force) {
            let unfit = |core: &Option<usize>| {
                core.is_none_or(|core| {
                    !ground.isolated.contains(core) || options.house_keeping.contains(&core)
                })
            };
            if let Some(core) = cores.iter().copied().find(unfit) {
                let core = core.map_or("any core".to_string(), |core| format!("core {core}"));
                let isolated = match ground.isolated.to_string() {
                    none if none.is_empty() => "none is isolated".to_string(),
                    cores => format!("isolated are {cores}"),
                };
                return Err(wrong(
                    "idle",
                    format!(
                        "pool `{name}`: a worker under {policy} that spins for ever on {core} leaves nothing to the kernel there, \
                         and {isolated}: use idle = \"park\" or \"spin:20us\", an isolated core (isolcpus=) that does no \
                         house-keeping, or --force"
                    ),
                ));
            }
        }
        if cores.contains(&Some(0)) {
            notes.push(format!(
                "pool `{name}` runs under {policy} on core 0, where most machines handle interrupts and keep house: choose \
                 another core if there is one"
            ));
        }
        notes.extend(policy.priority().and_then(|priority| above_interrupts(ground, name, priority, &cores)));
    }
    let is_real_time = |pool: &PoolPlan| pool.policy.is_some_and(|policy| policy.is_real_time());
    if options.lock_memory && ground.moves_locked_pages && pools.iter().any(is_real_time) {
        notes.push(
            "the kernel may move locked pages (vm.compact_unevictable_allowed), and a worker that touches one meanwhile waits: \
             sudo sysctl vm.compact_unevictable_allowed=0"
                .to_string(),
        );
    }
    Ok(notes)
}

/// Interrupt threads that a worker would block. One of them may deliver the data that the worker waits for.
fn above_interrupts(ground: &Ground, name: &str, priority: u8, cores: &[Option<usize>]) -> Option<String> {
    const SHOWN: usize = 3;
    let is_below = |thread: &&InterruptThread| {
        let shares = |core: &Option<usize>| core.is_none_or(|core| thread.cores.contains(core));
        (1..priority).contains(&thread.priority) && cores.iter().any(shares)
    };
    let below: Vec<&InterruptThread> = ground.interrupts.iter().filter(is_below).collect();
    let (first, highest) = (below.first()?, below.iter().map(|thread| thread.priority).max()?);
    let mut names: Vec<String> =
        below.iter().take(SHOWN).map(|thread| format!("`{}`", thread.name)).collect();
    if below.len() > SHOWN {
        names.push(format!("{} more", below.len() - SHOWN));
    }
    let example = &first.name;
    Some(format!(
        "pool `{name}` has priority {priority}, above that of interrupt threads on its cores ({}, up to {highest}): if one of \
         them feeds its source, raise that one (sudo chrt -f -p {} $(pgrep -f {example})) or lower the pool",
        names.join(", "),
        u32::from(priority) + 1
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(
        policy: &str,
        idle: Idle,
        core: Option<usize>,
        options: &Options,
    ) -> Result<Vec<String>, GraphError> {
        let thread = |name: &str, priority| InterruptThread {
            name: name.to_string(),
            priority,
            cores: "0-3".parse().unwrap(),
        };
        let ground = Ground {
            isolated: "2-3".parse().unwrap(),
            interrupts: vec![thread("irq/24-eth0", 50), thread("irq/25-radio", 90)],
            moves_locked_pages: true,
        };
        let pools =
            [PoolPlan { name: "p".into(), policy: Some(policy.parse().unwrap()), idle, workers: vec![0] }];
        let workers = [WorkerPlan { name: "p".into(), core, pool: 0, operators: Vec::new() }];
        check_on(&ground, &pools, &workers, options)
    }

    #[test]
    fn what_would_hang_a_machine_is_refused() {
        let (plain, forced) = (Options::default(), Options { force: true, ..Options::default() });
        let house = Options { house_keeping: vec![2], ..Options::default() };
        for (policy, idle, core, options, part) in [
            ("f:99", Idle::Park, Some(1), &plain, "priority 99"),
            ("r:99", Idle::Park, Some(1), &forced, "priority 99"),
            ("f:80", Idle::Spin, Some(1), &plain, "for ever on core 1"),
            ("r:80", Idle::Spin, None, &plain, "for ever on any core"),
            ("f:80", Idle::Spin, Some(2), &house, "house-keeping, or --force"),
        ] {
            let error = asked(policy, idle, core, options).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        for (policy, idle, core, options) in [
            ("f:98", Idle::Park, Some(1), &plain),
            ("f:80", Idle::Spin, Some(2), &plain),
            ("f:80", Idle::Spin, Some(1), &forced),
            ("f:80", Idle::SpinFor(20_000), Some(1), &plain),
            ("o:0", Idle::Spin, Some(1), &plain),
            ("d:1ms:10ms", Idle::Spin, None, &plain),
        ] {
            assert!(asked(policy, idle, core, options).is_ok(), "{policy} {idle} {core:?}");
        }
    }

    #[test]
    fn what_may_be_a_mistake_is_pointed_out() {
        let options = Options::default();
        let notes = |policy, core| asked(policy, Idle::Park, Some(core), &options).unwrap().join("\n");
        assert!(notes("f:10", 0).contains("core 0"), "{}", notes("f:10", 0));
        assert_eq!(notes("f:10", 1), "");
        assert_eq!(notes("o:0", 0), "");
        let above = notes("f:80", 1);
        assert!(above.contains("(`irq/24-eth0`, up to 50)") && !above.contains("radio"), "{above}");
        assert!(notes("r:95", 1).contains("up to 90"));
        assert_eq!(notes("f:95", 7), "", "they do not run there");
        let locked = Options { lock_memory: true, ..Options::default() };
        let notes = |policy| asked(policy, Idle::Park, Some(1), &locked).unwrap().join("\n");
        assert!(
            notes("d:1ms:9ms").contains("sysctl vm.compact_unevictable_allowed=0"),
            "{}",
            notes("d:1ms:9ms")
        );
        assert_eq!(notes("o:0"), "");
    }
}
