//! An allocation as a kind of resource.

use crate::call::Call;
use crate::error::ApiError;
use crate::resources::field::{
    Empty, Field, Reader, Type, Write, object, read_only, texts, trait_names, written,
};
use crate::resources::resource::{ResourceHandler, ResourceSpec, TooOld, check_name, equal, named_node};
use crate::schema::Kind;
use model::{Resource, ResourceKind};
use store::ResourceFilter;

/// An allocation.
pub struct Allocation;

const fn list_of(name: &'static str, kind: Reader) -> Field {
    written(name, 52, Write::Create(Type::Special(kind))).or(Empty::List).unsortable()
}

impl ResourceHandler for Allocation {
    const SPEC: ResourceSpec = ResourceSpec {
        kind: ResourceKind::Allocation,
        one: "an allocation",
        word: "allocation",
        path: "allocations",
        list: "allocations",
        since: 52,
        too_old: TooOld::Disallowed("allocations"),
        detail: None,
        named: Some(52),
        fields: &[
            list_of("candidate_nodes", texts),
            object("extra", 52),
            written("name", 52, Write::Always(Type::Plain(Kind::Text(255)))),
            written("owner", 60, Write::Create(Type::Plain(Kind::Text(255)))),
            written("resource_class", 52, Write::Create(Type::Plain(Kind::Text(80)))),
            list_of("traits", trait_names),
            read_only("last_error", 52),
            read_only("node_uuid", 52),
            read_only("state", 52),
        ],
        short: &[
            "uuid",
            "name",
            "candidate_nodes",
            "extra",
            "last_error",
            "node_uuid",
            "owner",
            "resource_class",
            "state",
            "traits",
            "created_at",
            "updated_at",
        ],
        filters: &[("node", 52), ("resource_class", 52), ("state", 52), ("owner", 60)],
        below: &[],
    };

    async fn validate(_: &Call, old: Option<&Resource>, new: Resource) -> Result<Resource, ApiError> {
        let verb = if old.is_some() { "update" } else { "create" };
        check_name(&new, &format!("Cannot {verb} allocation with invalid name"))?;
        Ok(new)
    }

    async fn narrowed(call: &Call, filter: ResourceFilter) -> Result<Option<ResourceFilter>, ApiError> {
        if let Some(ident) = call.args.text("node") {
            named_node(call, ident).await?;
        }
        equal(call, &Self::SPEC, filter).await
    }
}
