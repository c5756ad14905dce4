//! `[[pool]]`, and the keys that request settings of the machine for all pools.

use super::entries::set;
use super::error::Fault;
use super::overrides::Setting;
use super::section::{Section, type_words};
use crate::base::idle::Idle;
use crate::base::options::{CoreList, Options, PREFAULT_MOST_BYTES, Pool};
use crate::base::wording::{list, near, quoted};
use onbeat_os::Policy;
use serde_json::{Value, json};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

const KEYS: [&str; 6] = ["name", "cores", "workers", "policy", "idle", "operators"];

pub(super) fn read(top: &Section<'_, '_>, options: &mut Options) -> Result<(), Fault> {
    options.policy = policy(top)?;
    set(&mut options.lock_memory, top.get("lock_memory")?);
    set(&mut options.huge_pages, top.get("huge_pages")?);
    set(&mut options.numa, top.get("numa")?);
    set(&mut options.force, top.get("force")?);
    options.timer_slack_ns = top.time_ns("timer_slack")?;
    options.prefault = top.bytes("prefault")?;
    if let (Some(bytes), Some(value)) = (options.prefault, top.raw("prefault"))
        && bytes > PREFAULT_MOST_BYTES
    {
        let text = format!(
            "`prefault` of the pipeline: {bytes} bytes are more than the {PREFAULT_MOST_BYTES} that fit into a stack"
        );
        return Err(Fault::at(value.span(), text));
    }
    options.dma_latency_us = dma_latency_us(top)?;
    options.pools = top.tables("pool")?.iter().map(pool).collect::<Result<_, _>>()?;
    Ok(())
}

fn policy(section: &Section<'_, '_>) -> Result<Option<Policy>, Fault> {
    let Some(text) = section.get::<String>("policy")? else { return Ok(None) };
    text.get_ref().parse().map(Some).map_err(|error: onbeat_os::policy::PolicyError| {
        Fault::at(text.span(), format!("`policy` of {}: {error}", section.what))
    })
}

/// Reads `dma_latency`, for which 0 is valid.
fn dma_latency_us(top: &Section<'_, '_>) -> Result<Option<u32>, Fault> {
    let Some(time) = top.get::<crate::base::units::Seconds>("dma_latency")? else { return Ok(None) };
    let us =
        time.get_ref().as_ns().and_then(|ns| u32::try_from(ns / 1000).ok()).filter(|&us| us <= 2_000_000_000);
    us.map(Some).ok_or_else(|| {
        let text = format!("`dma_latency` of the pipeline: {} must be 0 us to 2000 s", time.get_ref());
        Fault::at(time.span(), text)
    })
}

fn pool(value: &Spanned<DeValue<'_>>) -> Result<Pool, Fault> {
    let section = Section::new("a pool", value, &KEYS)?;
    let name = section.need::<String>("name")?.into_inner();
    let section = Section { what: format!("pool {}", quoted(&name)), ..section };
    Ok(Pool {
        name,
        cores: section.get::<CoreList>("cores")?.map_or(Vec::new(), |cores| cores.into_inner().0),
        workers: section.get::<usize>("workers")?.map(Spanned::into_inner),
        policy: policy(&section)?,
        idle: section.get::<Idle>("idle")?.map(Spanned::into_inner),
        operators: section.get::<Vec<String>>("operators")?.map_or(Vec::new(), Spanned::into_inner),
    })
}

/// Whether a setting is for a pool: `pool.radio.cores`.
pub(super) fn is_for_a_pool(setting: &Setting<'_>, root: &DeTable<'_>) -> bool {
    setting.path[0] == "pool" && setting.path.len() > 2 && root.contains_key("pool")
}

/// Applies the setting to the pool that it names.
pub(super) fn apply<'i>(setting: &Setting<'i>, root: &mut DeTable<'i>) -> Result<(), Fault> {
    let wanted = setting.path[1];
    let Some(DeValue::Array(pools)) = root.get_mut("pool").map(Spanned::get_mut) else { return Ok(()) };
    let mut names: Vec<String> = Vec::new();
    for pool in pools.iter_mut() {
        let DeValue::Table(table) = pool.get_mut() else {
            let found = type_words(pool.get_ref());
            return Err(Fault::at(pool.span(), format!("a pool: expected a table, found {found}")));
        };
        match table.get("name").map(Spanned::get_ref) {
            Some(DeValue::String(name)) if name == wanted => return setting.apply(table, 2),
            Some(DeValue::String(name)) => names.push(name.to_string()),
            _ => {}
        }
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let hint = near(wanted, names.iter().copied());
    Err(Fault::at(setting.span.clone(), format!("there is no pool {}{hint}", quoted(wanted)))
        .help(format!("there are {}", list(&names))))
}

/// Pools as the record shows them.
pub(super) fn config(options: &Options) -> Value {
    let pools = options.pools.iter().map(|pool| {
        json!({
            "name": pool.name,
            "cores": pool.cores,
            "workers": pool.workers,
            "policy": pool.policy.map(|policy| policy.to_string()),
            "idle": pool.idle,
            "operators": pool.operators,
        })
    });
    pools.collect()
}
