//! What clients store besides nodes and ports, one file a kind of resource.

pub mod allocations;
pub mod chassis;
mod conductors;
pub mod deploy_templates;
mod field;
mod inspection_rules;
mod list;
pub mod portgroups;
mod resource;
mod rights;
pub mod runbooks;
mod view;
mod volumes;
mod write;

use crate::endpoint::Endpoint;

/// What is served of resources.
pub fn endpoints() -> Vec<Endpoint> {
    [
        chassis::endpoints(),
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
