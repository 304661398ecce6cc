//! The physical network of a port group: that of all its ports. A group without one adopts that of its first port.

use super::portgroups::{self, Portgroup};
use super::resource::refused;
use crate::call::Call;
use crate::error::ApiError;
use crate::retry::Retry;
use model::Resource;
use serde_json::Value;
use store::{ResourceWrite, StoreError};

const FIELD: &str = "physical_network";
const GROUP: &str = "portgroup_uuid";

/// The minor version since which clients set that of a port group, and not that of a port in it.
const OF_GROUPS: u16 = 102;

/// Whether a port that comes into a group, or that is in one and changes its network, has the network of the group.
///
/// # Errors
/// 409: it has another one. 400 since 1.102, where the network of a port in a group is the group's.
pub async fn check(
    call: &Call,
    old: Option<&Resource>,
    port: &Resource,
    group: &Resource,
) -> Result<(), ApiError> {
    let changed = |name: &str| old.is_none_or(|old| old.field(name) != port.field(name));
    if old.is_some() && changed(FIELD) && call.version.has(OF_GROUPS) {
        return Err(ApiError::invalid(
            "physical_network cannot be changed while the port belongs to a portgroup.",
        ));
    }
    if !changed(FIELD) && !changed(GROUP) {
        return Ok(());
    }
    let Some(network) = of_group(call, group, port).await? else { return Ok(()) };
    if network == *port.field(FIELD) {
        return Ok(());
    }
    let named = |network: &Value| network.as_str().unwrap_or("None").to_owned();
    Err(ApiError::conflict(format!(
        "Port with physical network {} cannot become a member of port group {} which has ports in physical network {}.",
        named(port.field(FIELD)),
        group.uuid,
        named(&network)
    )))
}

/// The network that the ports of a group have, apart from `port`, or that the group has without ports. `None`: it may be any.
async fn of_group(call: &Call, group: &Resource, port: &Resource) -> Result<Option<Value>, ApiError> {
    let others = portgroups::members(call, group).await?;
    let other = others.iter().find(|other| other.uuid != port.uuid);
    let network = other.map_or_else(|| group.field(FIELD).clone(), |other| other.field(FIELD).clone());
    Ok(Some(network).filter(|network| other.is_some() || !network.is_null()))
}

/// Give a group without a network that of its first port, which was written.
///
/// # Errors
/// The store failed, or others kept changing the group.
pub async fn adopt(call: &Call, port: &Resource) -> Result<(), ApiError> {
    let (Some(group), Value::String(network)) = (port.text(GROUP), port.field(FIELD)) else { return Ok(()) };
    let mut retry = Retry::new();
    loop {
        let mut group = portgroups::find(call, group).await?;
        if !group.field(FIELD).is_null() {
            return Ok(());
        }
        group.fields.insert(FIELD.into(), network.as_str().into());
        group.updated_at = Some(call.now());
        match call
            .app
            .store
            .write_resource(
                ResourceWrite::Update(group.clone()),
                None,
                call.did(&group, "changed (physical_network)"),
            )
            .await
        {
            Ok(_) => return Ok(()),
            Err(StoreError::Stale(_)) if retry.again().await => {}
            Err(other) => return Err(refused::<Portgroup>(other, &group)),
        }
    }
}
