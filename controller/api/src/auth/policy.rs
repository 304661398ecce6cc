//! The table of policies, and its evaluation. Pure.
//!
//! The rows `baremetal:*` are Ironic's defaults; `tests/rights/policy.rs` holds them to what Ironic's own code answers
//! (`tests/fixtures/ironic_policy.py`). The rows `anneal:*` are ours.

use super::identity::{Identity, Owners, Role, Scope};

/// The least role that is allowed, or none.
type Least = Option<Role>;

const READER: Least = Some(Role::Reader);
const MEMBER: Least = Some(Role::Member);
const MANAGER: Least = Some(Role::Manager);
const ADMIN: Least = Some(Role::Admin);
const NO_ROLE: Least = None;

/// A policy, and the least role that is allowed: of the system, of the owner, of the lessee, of any project.
type Row = (&'static str, [Least; 4]);

const TABLE: &[Row] = &[
    ("anneal:bundle:create", [ADMIN, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("anneal:bundle:delete", [ADMIN, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("anneal:bundle:get", [READER, NO_ROLE, NO_ROLE, NO_ROLE]),
    // Of the nodes that the caller sees.
    ("anneal:certificate:get", [READER, READER, READER, READER]),
    ("anneal:certificate:log", [READER, NO_ROLE, NO_ROLE, NO_ROLE]),
    // A machine that is approved becomes a node like any other.
    ("anneal:discovery:decide", [ADMIN, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("anneal:discovery:get", [READER, NO_ROLE, NO_ROLE, NO_ROLE]),
    // Of the nodes whose history the caller may read.
    ("anneal:event:list", [READER, READER, READER, READER]),
    ("anneal:event:list_all", [READER, NO_ROLE, NO_ROLE, NO_ROLE]),
    // Of all nodes together.
    ("anneal:metrics:get", [READER, NO_ROLE, NO_ROLE, NO_ROLE]),
    // What an owner may not do: pull a disk that still holds data and have its node pass as erased.
    ("anneal:node:disks:retire", [MEMBER, NO_ROLE, NO_ROLE, NO_ROLE]),
    // What is accepted here is believed of every later boot.
    ("anneal:node:measurements:accept", [ADMIN, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("anneal:node:measurements:get", [READER, READER, NO_ROLE, NO_ROLE]),
    // Makes a node available whose disks may contain anything.
    ("anneal:node:override", [ADMIN, NO_ROLE, NO_ROLE, NO_ROLE]),
    // What the caller may do, of which every answer 403 says as much.
    ("anneal:rights:get", [READER, READER, READER, READER]),
    // For the caller's own browser.
    ("anneal:session:link", [READER, READER, READER, READER]),
    // They have events of all nodes.
    ("anneal:webhook:get", [READER, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("anneal:webhook:retry", [ADMIN, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:allocation:create", [MEMBER, MEMBER, MEMBER, MEMBER]),
    ("baremetal:allocation:create_pre_rbac", [NO_ROLE, ADMIN, ADMIN, ADMIN]),
    ("baremetal:allocation:create_restricted", [MEMBER, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:allocation:delete", [MEMBER, MEMBER, NO_ROLE, NO_ROLE]),
    ("baremetal:allocation:get", [READER, READER, NO_ROLE, NO_ROLE]),
    ("baremetal:allocation:list", [READER, READER, READER, READER]),
    ("baremetal:allocation:list_all", [READER, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:allocation:update", [MEMBER, MEMBER, NO_ROLE, NO_ROLE]),
    ("baremetal:chassis:create", [ADMIN, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:chassis:delete", [ADMIN, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:chassis:get", [READER, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:chassis:update", [MEMBER, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:conductor:get", [READER, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:deploy_template:create", [ADMIN, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:deploy_template:delete", [ADMIN, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:deploy_template:get", [READER, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:deploy_template:update", [ADMIN, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:driver:get", [READER, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:driver:get_properties", [READER, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:driver:get_raid_logical_disk_properties", [READER, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:driver:ipa_continue_inspection", [READER, READER, READER, READER]),
    ("baremetal:driver:ipa_lookup", [READER, READER, READER, READER]),
    ("baremetal:driver:vendor_passthru", [ADMIN, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:events:post", [ADMIN, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:inspection_rule:create", [ADMIN, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:inspection_rule:delete", [ADMIN, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:inspection_rule:get", [READER, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:inspection_rule:list_all", [READER, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:inspection_rule:update", [ADMIN, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:node:bios:get", [READER, READER, READER, NO_ROLE]),
    ("baremetal:node:clear_maintenance", [MEMBER, MEMBER, MANAGER, NO_ROLE]),
    ("baremetal:node:create", [ADMIN, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:node:create:self_owned_node", [ADMIN, ADMIN, ADMIN, ADMIN]),
    ("baremetal:node:delete", [ADMIN, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:node:delete:self_owned_node", [NO_ROLE, ADMIN, NO_ROLE, NO_ROLE]),
    ("baremetal:node:disable_cleaning", [ADMIN, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:node:firmware:get", [READER, READER, READER, NO_ROLE]),
    ("baremetal:node:get", [READER, READER, READER, NO_ROLE]),
    ("baremetal:node:get:driver_info", [READER, READER, NO_ROLE, NO_ROLE]),
    ("baremetal:node:get:driver_internal_info", [READER, READER, NO_ROLE, NO_ROLE]),
    ("baremetal:node:get:filter_threshold", [READER, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:node:get:last_error", [READER, READER, NO_ROLE, NO_ROLE]),
    ("baremetal:node:get:reservation", [READER, READER, NO_ROLE, NO_ROLE]),
    ("baremetal:node:get_boot_device", [MEMBER, MANAGER, NO_ROLE, NO_ROLE]),
    ("baremetal:node:get_console", [MEMBER, MEMBER, NO_ROLE, NO_ROLE]),
    ("baremetal:node:get_indicator_state", [READER, READER, READER, NO_ROLE]),
    ("baremetal:node:get_states", [READER, READER, READER, NO_ROLE]),
    ("baremetal:node:history:get", [READER, READER, NO_ROLE, NO_ROLE]),
    ("baremetal:node:inject_nmi", [MEMBER, MANAGER, NO_ROLE, NO_ROLE]),
    ("baremetal:node:inventory:get", [READER, READER, NO_ROLE, NO_ROLE]),
    ("baremetal:node:ipa_heartbeat", [READER, READER, READER, READER]),
    ("baremetal:node:list", [READER, READER, READER, READER]),
    ("baremetal:node:list_all", [READER, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:node:set_boot_device", [MEMBER, MANAGER, NO_ROLE, NO_ROLE]),
    ("baremetal:node:set_boot_mode", [MEMBER, MEMBER, MEMBER, NO_ROLE]),
    ("baremetal:node:set_console_state", [MEMBER, MEMBER, NO_ROLE, NO_ROLE]),
    ("baremetal:node:set_indicator_state", [MEMBER, MEMBER, NO_ROLE, NO_ROLE]),
    ("baremetal:node:set_maintenance", [MEMBER, MEMBER, MANAGER, NO_ROLE]),
    ("baremetal:node:set_power_state", [MEMBER, MEMBER, MEMBER, NO_ROLE]),
    ("baremetal:node:set_provision_state", [MEMBER, MEMBER, MANAGER, NO_ROLE]),
    ("baremetal:node:set_provision_state:clean_steps", [MEMBER, MEMBER, MANAGER, NO_ROLE]),
    ("baremetal:node:set_provision_state:service_steps", [MEMBER, MEMBER, MANAGER, NO_ROLE]),
    ("baremetal:node:set_raid_state", [MEMBER, MEMBER, NO_ROLE, NO_ROLE]),
    ("baremetal:node:set_secure_boot", [MEMBER, MEMBER, MEMBER, NO_ROLE]),
    ("baremetal:node:traits:delete", [MEMBER, MANAGER, NO_ROLE, NO_ROLE]),
    ("baremetal:node:traits:list", [READER, READER, READER, NO_ROLE]),
    ("baremetal:node:traits:set", [MEMBER, MANAGER, NO_ROLE, NO_ROLE]),
    ("baremetal:node:update", [MEMBER, MEMBER, MEMBER, NO_ROLE]),
    ("baremetal:node:update:chassis_uuid", [ADMIN, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:node:update:conductor_group", [MEMBER, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:node:update:disable_power_off", [ADMIN, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:node:update:driver_info", [MEMBER, MEMBER, NO_ROLE, NO_ROLE]),
    ("baremetal:node:update:driver_interfaces", [MEMBER, MANAGER, NO_ROLE, NO_ROLE]),
    ("baremetal:node:update:instance_uuid", [MEMBER, MEMBER, NO_ROLE, NO_ROLE]),
    ("baremetal:node:update:lessee", [MEMBER, MEMBER, NO_ROLE, NO_ROLE]),
    ("baremetal:node:update:name", [MEMBER, MEMBER, NO_ROLE, NO_ROLE]),
    ("baremetal:node:update:network_data", [MEMBER, MEMBER, NO_ROLE, NO_ROLE]),
    ("baremetal:node:update:owner", [MEMBER, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:node:update:parent_node", [MEMBER, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:node:update:properties", [MEMBER, MEMBER, NO_ROLE, NO_ROLE]),
    ("baremetal:node:update:retired", [MEMBER, MEMBER, NO_ROLE, NO_ROLE]),
    ("baremetal:node:update:shard", [ADMIN, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:node:update_extra", [MEMBER, MEMBER, MEMBER, NO_ROLE]),
    ("baremetal:node:update_instance_info", [MEMBER, MEMBER, MANAGER, NO_ROLE]),
    ("baremetal:node:update_owner_provisioned", [ADMIN, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:node:validate", [MEMBER, MEMBER, MANAGER, NO_ROLE]),
    ("baremetal:node:vendor_passthru", [ADMIN, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:node:vif:attach", [MEMBER, MEMBER, MANAGER, NO_ROLE]),
    ("baremetal:node:vif:detach", [MEMBER, MEMBER, MANAGER, NO_ROLE]),
    ("baremetal:node:vif:list", [READER, READER, READER, NO_ROLE]),
    ("baremetal:node:vmedia:attach", [MEMBER, MEMBER, MEMBER, NO_ROLE]),
    ("baremetal:node:vmedia:detach", [MEMBER, MEMBER, MEMBER, NO_ROLE]),
    ("baremetal:node:vmedia:get", [READER, READER, READER, NO_ROLE]),
    ("baremetal:port:create", [ADMIN, MANAGER, NO_ROLE, NO_ROLE]),
    ("baremetal:port:delete", [ADMIN, MANAGER, NO_ROLE, NO_ROLE]),
    ("baremetal:port:get", [READER, READER, READER, NO_ROLE]),
    ("baremetal:port:list", [READER, READER, READER, READER]),
    ("baremetal:port:list_all", [READER, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:port:update", [MEMBER, MANAGER, NO_ROLE, NO_ROLE]),
    ("baremetal:portgroup:create", [ADMIN, MANAGER, NO_ROLE, NO_ROLE]),
    ("baremetal:portgroup:delete", [ADMIN, MANAGER, NO_ROLE, NO_ROLE]),
    ("baremetal:portgroup:get", [READER, READER, READER, NO_ROLE]),
    ("baremetal:portgroup:list", [READER, READER, READER, READER]),
    ("baremetal:portgroup:list_all", [READER, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:portgroup:update", [MEMBER, MANAGER, NO_ROLE, NO_ROLE]),
    ("baremetal:runbook:create", [MEMBER, MANAGER, MANAGER, MANAGER]),
    ("baremetal:runbook:delete", [MEMBER, MANAGER, NO_ROLE, NO_ROLE]),
    ("baremetal:runbook:get", [READER, READER, NO_ROLE, NO_ROLE]),
    ("baremetal:runbook:list", [READER, READER, READER, READER]),
    ("baremetal:runbook:list_all", [READER, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:runbook:update", [MEMBER, MANAGER, NO_ROLE, NO_ROLE]),
    ("baremetal:runbook:update:owner", [MEMBER, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:runbook:update:public", [MEMBER, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:runbook:use", [MEMBER, MANAGER, NO_ROLE, NO_ROLE]),
    ("baremetal:shards:get", [READER, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:volume:create", [MEMBER, MANAGER, MANAGER, NO_ROLE]),
    ("baremetal:volume:delete", [MEMBER, MANAGER, MANAGER, NO_ROLE]),
    ("baremetal:volume:get", [READER, READER, READER, NO_ROLE]),
    ("baremetal:volume:list", [READER, READER, READER, READER]),
    ("baremetal:volume:list_all", [READER, NO_ROLE, NO_ROLE, NO_ROLE]),
    ("baremetal:volume:update", [MEMBER, MEMBER, MANAGER, NO_ROLE]),
    ("baremetal:volume:view_target_properties", [READER, ADMIN, ADMIN, ADMIN]),
];

/// Whether `identity` may do what `policy` guards to an object of `owners`; `None`: to an object without owners. A policy
/// that the table lacks is for administrators of the system.
pub fn may(policy: &str, identity: &Identity, owners: Option<&Owners>) -> bool {
    let Some(grant) = &identity.grant else { return false };
    let [system, owner, lessee, any] = least(policy);
    let enough = |least: Least| least.is_some_and(|least| grant.role >= least);
    match &grant.scope {
        Scope::System => enough(system),
        Scope::Project(project) => {
            let is = |known: Option<&String>| known == Some(project);
            enough(any)
                || (is(owners.and_then(|owners| owners.owner.as_ref())) && enough(owner))
                || (is(owners.and_then(|owners| owners.lessee.as_ref())) && enough(lessee))
        }
    }
}

/// Whether `identity` could do it to some object.
pub fn might(policy: &str, identity: &Identity) -> bool {
    let project = identity.project().map(str::to_owned);
    may(policy, identity, Some(&Owners { owner: project.clone(), lessee: project }))
}

/// The policy that Ironic checks after this one was refused: for the caller's own nodes instead of for all.
pub fn lesser(policy: &str) -> Option<String> {
    match policy {
        "baremetal:node:create" => Some("baremetal:node:create:self_owned_node".to_owned()),
        "baremetal:node:delete" => Some("baremetal:node:delete:self_owned_node".to_owned()),
        other => other.strip_suffix(":list_all").map(|object| format!("{object}:list")),
    }
}

/// Names of all policies.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(name, _)| *name)
}

fn least(policy: &str) -> [Least; 4] {
    let row = TABLE.iter().find(|(name, _)| *name == policy);
    row.map_or([ADMIN, NO_ROLE, NO_ROLE, NO_ROLE], |(_, least)| *least)
}
