//! Which nodes a list shows: the filters of its query.

use crate::call::Call;
use crate::error::ApiError;
use model::ProvisionState;
use store::{FieldValue, NodeField, NodeFilter};
use uuid::Uuid;

/// Filters with the minor version since which they exist.
pub const FILTERS: [(&str, u16); 20] = [
    ("associated", 1),
    ("chassis_uuid", 1),
    ("conductor", 49),
    ("conductor_group", 46),
    ("description_contains", 1),
    ("driver", 16),
    ("fault", 42),
    ("include_children", 83),
    ("instance_name", 104),
    ("instance_uuid", 1),
    ("lessee", 65),
    ("maintenance", 1),
    ("owner", 50),
    ("parent_node", 83),
    ("project", 1),
    ("provision_state", 9),
    ("resource_class", 21),
    ("retired", 1),
    ("shard", 82),
    ("sharded", 82),
];

/// Faults that a node can have in Ironic.
pub const FAULTS: [&str; 4] = ["power failure", "clean failure", "rescue abort failure", "service failure"];

/// Refuses filters that the version of the request does not have.
pub fn check_versions(call: &Call) -> Result<(), ApiError> {
    for (name, since) in FILTERS {
        match call.args.text(name) {
            None => {}
            Some(_) if name == "instance_name" && !call.version.has(since) => {
                return Err(ApiError::client(406, "instance_name is not acceptable in this API version"));
            }
            // Ironic names the required version for every filter but this one.
            Some(_) if name == "provision_state" => call.version.needs(since)?,
            Some(_) => call.version.needs_for_filter(since)?,
        }
    }
    Ok(())
}

/// The filter of a query for the nodes of a chassis, or of all; `None` if no node can match.
pub fn of(call: &Call, chassis: Option<Uuid>) -> Result<Option<NodeFilter>, ApiError> {
    let args = &call.args;
    let text = |name: &str| args.text(name).map(FieldValue::from);
    let provision_state = args
        .text("provision_state")
        .map(|name| {
            ProvisionState::named(name)
                .ok_or_else(|| ApiError::invalid(format!("Provision state \"{name}\" is not valid")))
        })
        .transpose()?;
    if let Some(fault) = args.text("fault").filter(|fault| !FAULTS.contains(fault)) {
        return Err(ApiError::invalid(format!(
            "Unrecognized fault \"{fault}\" is specified, allowed faults are {FAULTS:?}"
        )));
    }
    let mut filter = NodeFilter::default();
    let mut equal = |field: NodeField, value: Option<FieldValue>| {
        filter.equal.extend(value.map(|value| (field, value)));
    };
    let uuid = |uuid: Option<Uuid>| uuid.map(|uuid| FieldValue::Text(uuid.to_string()));
    equal(NodeField::Driver, text("driver"));
    equal(NodeField::ResourceClass, text("resource_class"));
    equal(NodeField::Owner, text("owner"));
    equal(NodeField::Lessee, text("lessee"));
    equal(NodeField::InstanceName, text("instance_name"));
    equal(NodeField::Fault, text("fault"));
    let group = args.text("conductor_group").map(|group| FieldValue::Text(group.to_lowercase()));
    equal(NodeField::ConductorGroup, group);
    equal(NodeField::ChassisUuid, uuid(args.uuid("chassis_uuid")?));
    equal(NodeField::ChassisUuid, uuid(chassis));
    // Without a word about children, none are shown.
    match args.boolean("include_children")? {
        Some(true) => {}
        _ => equal(NodeField::ParentNode, text("parent_node").or(Some(FieldValue::Null))),
    }
    if call.identity.project().is_some_and(|own| args.text("project").is_some_and(|asked| asked != own)) {
        return Err(ApiError::forbidden("baremetal:node:list_all"));
    }
    let associated = args.boolean("associated")?;
    equal(NodeField::Maintenance, args.boolean("maintenance")?.map(FieldValue::Bool));
    equal(NodeField::Retired, args.boolean("retired")?.map(FieldValue::Bool));
    let sharded = args.boolean("sharded")?;
    equal(NodeField::InstanceUuid, uuid(args.uuid("instance_uuid")?));
    equal(NodeField::ProvisionState, provision_state.map(|state| state.as_str().into()));
    filter.associated = associated;
    filter.sharded = sharded;
    filter.one_of.extend(args.list("shard").map(|shards| (NodeField::Shard, shards)));
    filter.projects.extend(args.text("project").map(str::to_owned));
    filter.description_contains = args.text("description_contains").map(str::to_lowercase);
    let members = &call.app.members;
    let others = members.alive();
    let is_known = |host: &str| host == members.own() || others.iter().any(|one| one.hostname == host);
    Ok(args.text("conductor").is_none_or(is_known).then_some(filter))
}
