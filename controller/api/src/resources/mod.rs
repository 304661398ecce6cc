//! What clients store besides nodes, one file a kind of resource.

pub mod allocations;
pub mod chassis;
mod conductors;
pub mod deploy_templates;
pub mod field;
mod filter;
mod inspection_rules;
mod list;
mod physical_network;
mod portgroups;
pub mod ports;
pub mod resource;
mod rights;
pub mod runbooks;
mod scan;
mod view;
mod volumes;
mod write;

use crate::endpoint::Endpoint;

/// Endpoints of resources.
pub fn endpoints() -> Vec<Endpoint> {
    [
        chassis::endpoints(),
        ports::endpoints(),
        portgroups::endpoints(),
        volumes::endpoints(),
        allocations::endpoints(),
        conductors::endpoints(),
        runbooks::endpoints(),
        deploy_templates::endpoints(),
        inspection_rules::endpoints(),
    ]
    .concat()
}
