//! Deployments: one pipeline, cut at the edges between nodes into a part for each.
//!
//! | module | contents |
//! |---|---|
//! | `hosts` | the deployment file: which operator runs on which node |
//! | `split`, `cut`, `paths` | the parts, with both ends of a link where an edge was cut |

mod cut;
mod hosts;
mod paths;
mod split;

pub use hosts::{HostNode, Hosts, is_node_name};
pub use split::{NodePart, TypedEdge, split, without_machine};
