//! Who may what: the one table, and how it is read. Pure.
//!
//! The rows `baremetal:*` are Ironic's defaults; `tests/rights/policy.rs` holds them to what Ironic's own code answers
//! (`tests/fixtures/ironic_policy.py`). The rows `anneal:*` are ours.

use super::identity::{Identity, Owners, Role, Scope};

/// The least role that may, or nobody.
type Least = Option<Role>;

const READER: Least = Some(Role::Reader);
const MEMBER: Least = Some(Role::Member);
const MANAGER: Least = Some(Role::Manager);
const ADMIN: Least = Some(Role::Admin);
const NOBODY: Least = None;

/// A policy, and the least role that may: of the system, of the owner, of the lessee, of any project.
type Row = (&'static str, [Least; 4]);

const TABLE: &[Row] = &[
    ("anneal:bundle:create", [ADMIN, NOBODY, NOBODY, NOBODY]),
    ("anneal:bundle:delete", [ADMIN, NOBODY, NOBODY, NOBODY]),
    ("anneal:bundle:get", [READER, NOBODY, NOBODY, NOBODY]),
    // Of the nodes that the caller sees.
    ("anneal:certificate:get", [READER, READER, READER, READER]),
    ("baremetal:allocation:create", [MEMBER, MEMBER, MEMBER, MEMBER]),
    ("baremetal:allocation:create_pre_rbac", [NOBODY, ADMIN, ADMIN, ADMIN]),
    ("baremetal:allocation:create_restricted", [MEMBER, NOBODY, NOBODY, NOBODY]),
    ("baremetal:allocation:delete", [MEMBER, MEMBER, NOBODY, NOBODY]),
    ("baremetal:allocation:get", [READER, READER, NOBODY, NOBODY]),
    ("baremetal:allocation:list", [READER, READER, READER, READER]),
    ("baremetal:allocation:list_all", [READER, NOBODY, NOBODY, NOBODY]),
    ("baremetal:allocation:update", [MEMBER, MEMBER, NOBODY, NOBODY]),
    ("baremetal:chassis:create", [ADMIN, NOBODY, NOBODY, NOBODY]),
    ("baremetal:chassis:delete", [ADMIN, NOBODY, NOBODY, NOBODY]),
    ("baremetal:chassis:get", [READER, NOBODY, NOBODY, NOBODY]),
    ("baremetal:chassis:update", [MEMBER, NOBODY, NOBODY, NOBODY]),
    ("baremetal:conductor:get", [READER, NOBODY, NOBODY, NOBODY]),
    ("baremetal:deploy_template:create", [ADMIN, NOBODY, NOBODY, NOBODY]),
    ("baremetal:deploy_template:delete", [ADMIN, NOBODY, NOBODY, NOBODY]),
    ("baremetal:deploy_template:get", [READER, NOBODY, NOBODY, NOBODY]),
    ("baremetal:deploy_template:update", [ADMIN, NOBODY, NOBODY, NOBODY]),
    ("baremetal:driver:get", [READER, NOBODY, NOBODY, NOBODY]),
    ("baremetal:driver:get_properties", [READER, NOBODY, NOBODY, NOBODY]),
    ("baremetal:driver:get_raid_logical_disk_properties", [READER, NOBODY, NOBODY, NOBODY]),
    ("baremetal:driver:ipa_continue_inspection", [READER, READER, READER, READER]),
    ("baremetal:driver:ipa_lookup", [READER, READER, READER, READER]),
    ("baremetal:driver:vendor_passthru", [ADMIN, NOBODY, NOBODY, NOBODY]),
    ("baremetal:events:post", [ADMIN, NOBODY, NOBODY, NOBODY]),
    ("baremetal:inspection_rule:create", [ADMIN, NOBODY, NOBODY, NOBODY]),
    ("baremetal:inspection_rule:delete", [ADMIN, NOBODY, NOBODY, NOBODY]),
    ("baremetal:inspection_rule:get", [READER, NOBODY, NOBODY, NOBODY]),
    ("baremetal:inspection_rule:list_all", [READER, NOBODY, NOBODY, NOBODY]),
    ("baremetal:inspection_rule:update", [ADMIN, NOBODY, NOBODY, NOBODY]),
    ("baremetal:node:bios:get", [READER, READER, READER, NOBODY]),
    ("baremetal:node:clear_maintenance", [MEMBER, MEMBER, MANAGER, NOBODY]),
    ("baremetal:node:create", [ADMIN, NOBODY, NOBODY, NOBODY]),
    ("baremetal:node:create:self_owned_node", [ADMIN, ADMIN, ADMIN, ADMIN]),
    ("baremetal:node:delete", [ADMIN, NOBODY, NOBODY, NOBODY]),
    ("baremetal:node:delete:self_owned_node", [NOBODY, ADMIN, NOBODY, NOBODY]),
    ("baremetal:node:disable_cleaning", [ADMIN, NOBODY, NOBODY, NOBODY]),
    ("baremetal:node:firmware:get", [READER, READER, READER, NOBODY]),
    ("baremetal:node:get", [READER, READER, READER, NOBODY]),
    ("baremetal:node:get:driver_info", [READER, READER, NOBODY, NOBODY]),
    ("baremetal:node:get:driver_internal_info", [READER, READER, NOBODY, NOBODY]),
    ("baremetal:node:get:filter_threshold", [READER, NOBODY, NOBODY, NOBODY]),
    ("baremetal:node:get:last_error", [READER, READER, NOBODY, NOBODY]),
    ("baremetal:node:get:reservation", [READER, READER, NOBODY, NOBODY]),
    ("baremetal:node:get_boot_device", [MEMBER, MANAGER, NOBODY, NOBODY]),
    ("baremetal:node:get_console", [MEMBER, MEMBER, NOBODY, NOBODY]),
    ("baremetal:node:get_indicator_state", [READER, READER, READER, NOBODY]),
    ("baremetal:node:get_states", [READER, READER, READER, NOBODY]),
    ("baremetal:node:history:get", [READER, READER, NOBODY, NOBODY]),
    ("baremetal:node:inject_nmi", [MEMBER, MANAGER, NOBODY, NOBODY]),
    ("baremetal:node:inventory:get", [READER, READER, NOBODY, NOBODY]),
    ("baremetal:node:ipa_heartbeat", [READER, READER, READER, READER]),
    ("baremetal:node:list", [READER, READER, READER, READER]),
    ("baremetal:node:list_all", [READER, NOBODY, NOBODY, NOBODY]),
    ("baremetal:node:set_boot_device", [MEMBER, MANAGER, NOBODY, NOBODY]),
    ("baremetal:node:set_boot_mode", [MEMBER, MEMBER, MEMBER, NOBODY]),
    ("baremetal:node:set_console_state", [MEMBER, MEMBER, NOBODY, NOBODY]),
    ("baremetal:node:set_indicator_state", [MEMBER, MEMBER, NOBODY, NOBODY]),
    ("baremetal:node:set_maintenance", [MEMBER, MEMBER, MANAGER, NOBODY]),
    ("baremetal:node:set_power_state", [MEMBER, MEMBER, MEMBER, NOBODY]),
    ("baremetal:node:set_provision_state", [MEMBER, MEMBER, MANAGER, NOBODY]),
    ("baremetal:node:set_provision_state:clean_steps", [MEMBER, MEMBER, MANAGER, NOBODY]),
    ("baremetal:node:set_provision_state:service_steps", [MEMBER, MEMBER, MANAGER, NOBODY]),
    ("baremetal:node:set_raid_state", [MEMBER, MEMBER, NOBODY, NOBODY]),
    ("baremetal:node:set_secure_boot", [MEMBER, MEMBER, MEMBER, NOBODY]),
    ("baremetal:node:traits:delete", [MEMBER, MANAGER, NOBODY, NOBODY]),
    ("baremetal:node:traits:list", [READER, READER, READER, NOBODY]),
    ("baremetal:node:traits:set", [MEMBER, MANAGER, NOBODY, NOBODY]),
    ("baremetal:node:update", [MEMBER, MEMBER, MEMBER, NOBODY]),
    ("baremetal:node:update:chassis_uuid", [ADMIN, NOBODY, NOBODY, NOBODY]),
    ("baremetal:node:update:conductor_group", [MEMBER, NOBODY, NOBODY, NOBODY]),
    ("baremetal:node:update:disable_power_off", [ADMIN, NOBODY, NOBODY, NOBODY]),
    ("baremetal:node:update:driver_info", [MEMBER, MEMBER, NOBODY, NOBODY]),
    ("baremetal:node:update:driver_interfaces", [MEMBER, MANAGER, NOBODY, NOBODY]),
    ("baremetal:node:update:instance_uuid", [MEMBER, MEMBER, NOBODY, NOBODY]),
    ("baremetal:node:update:lessee", [MEMBER, MEMBER, NOBODY, NOBODY]),
    ("baremetal:node:update:name", [MEMBER, MEMBER, NOBODY, NOBODY]),
    ("baremetal:node:update:network_data", [MEMBER, MEMBER, NOBODY, NOBODY]),
    ("baremetal:node:update:owner", [MEMBER, NOBODY, NOBODY, NOBODY]),
    ("baremetal:node:update:parent_node", [MEMBER, NOBODY, NOBODY, NOBODY]),
    ("baremetal:node:update:properties", [MEMBER, MEMBER, NOBODY, NOBODY]),
    ("baremetal:node:update:retired", [MEMBER, MEMBER, NOBODY, NOBODY]),
    ("baremetal:node:update:shard", [ADMIN, NOBODY, NOBODY, NOBODY]),
    ("baremetal:node:update_extra", [MEMBER, MEMBER, MEMBER, NOBODY]),
    ("baremetal:node:update_instance_info", [MEMBER, MEMBER, MANAGER, NOBODY]),
    ("baremetal:node:update_owner_provisioned", [ADMIN, NOBODY, NOBODY, NOBODY]),
    ("baremetal:node:validate", [MEMBER, MEMBER, MANAGER, NOBODY]),
    ("baremetal:node:vendor_passthru", [ADMIN, NOBODY, NOBODY, NOBODY]),
    ("baremetal:node:vif:attach", [MEMBER, MEMBER, MANAGER, NOBODY]),
    ("baremetal:node:vif:detach", [MEMBER, MEMBER, MANAGER, NOBODY]),
    ("baremetal:node:vif:list", [READER, READER, READER, NOBODY]),
    ("baremetal:node:vmedia:attach", [MEMBER, MEMBER, MEMBER, NOBODY]),
    ("baremetal:node:vmedia:detach", [MEMBER, MEMBER, MEMBER, NOBODY]),
    ("baremetal:node:vmedia:get", [READER, READER, READER, NOBODY]),
    ("baremetal:port:create", [ADMIN, MANAGER, NOBODY, NOBODY]),
    ("baremetal:port:delete", [ADMIN, MANAGER, NOBODY, NOBODY]),
    ("baremetal:port:get", [READER, READER, READER, NOBODY]),
    ("baremetal:port:list", [READER, READER, READER, READER]),
    ("baremetal:port:list_all", [READER, NOBODY, NOBODY, NOBODY]),
    ("baremetal:port:update", [MEMBER, MANAGER, NOBODY, NOBODY]),
    ("baremetal:portgroup:create", [ADMIN, MANAGER, NOBODY, NOBODY]),
    ("baremetal:portgroup:delete", [ADMIN, MANAGER, NOBODY, NOBODY]),
    ("baremetal:portgroup:get", [READER, READER, READER, NOBODY]),
    ("baremetal:portgroup:list", [READER, READER, READER, READER]),
    ("baremetal:portgroup:list_all", [READER, NOBODY, NOBODY, NOBODY]),
    ("baremetal:portgroup:update", [MEMBER, MANAGER, NOBODY, NOBODY]),
    ("baremetal:runbook:create", [MEMBER, MANAGER, MANAGER, MANAGER]),
    ("baremetal:runbook:delete", [MEMBER, MANAGER, NOBODY, NOBODY]),
    ("baremetal:runbook:get", [READER, READER, NOBODY, NOBODY]),
    ("baremetal:runbook:list", [READER, READER, READER, READER]),
    ("baremetal:runbook:list_all", [READER, NOBODY, NOBODY, NOBODY]),
    ("baremetal:runbook:update", [MEMBER, MANAGER, NOBODY, NOBODY]),
    ("baremetal:runbook:update:owner", [MEMBER, NOBODY, NOBODY, NOBODY]),
    ("baremetal:runbook:update:public", [MEMBER, NOBODY, NOBODY, NOBODY]),
    ("baremetal:runbook:use", [MEMBER, MANAGER, NOBODY, NOBODY]),
    ("baremetal:shards:get", [READER, NOBODY, NOBODY, NOBODY]),
    ("baremetal:volume:create", [MEMBER, MANAGER, MANAGER, NOBODY]),
    ("baremetal:volume:delete", [MEMBER, MANAGER, MANAGER, NOBODY]),
    ("baremetal:volume:get", [READER, READER, READER, NOBODY]),
    ("baremetal:volume:list", [READER, READER, READER, READER]),
    ("baremetal:volume:list_all", [READER, NOBODY, NOBODY, NOBODY]),
    ("baremetal:volume:update", [MEMBER, MEMBER, MANAGER, NOBODY]),
    ("baremetal:volume:view_target_properties", [READER, ADMIN, ADMIN, ADMIN]),
];

/// Whether `identity` may do what `policy` guards, to something of `owners`; `None`: to nothing that is owned. What
/// the table does not know is for administrators of the system.
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

/// Whether there is anything to which `identity` may do it.
pub fn might(policy: &str, identity: &Identity) -> bool {
    let project = identity.project().map(str::to_owned);
    may(policy, identity, Some(&Owners { owner: project.clone(), lessee: project }))
}

/// What Ironic asks next when a policy refuses: for the caller's own nodes instead of for all.
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
    row.map_or([ADMIN, NOBODY, NOBODY, NOBODY], |(_, least)| *least)
}
