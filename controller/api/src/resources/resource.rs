//! A kind of resource: what it says of itself ([`ResourceSpec`], [`ResourceHandler`]), and what all kinds share.
//! `list.rs` and `write.rs` serve every kind that implements it, in the words of Ironic.

use super::field::{self, Empty, Field};
use super::filter;
use crate::args::is_logical_name;
use crate::call::Call;
use crate::error::ApiError;
use crate::format::{at, iso, text};
use crate::lock::Lock;
use crate::shown;
use model::{Node, ProvisionState, Resource, ResourceKind};
use serde_json::{Map, Value};
use store::{Noun, ResourceField, ResourceFilter, StoreError, Unique};
use uuid::Uuid;

/// What Ironic says before the version that brought a resource.
#[derive(Debug, Clone, Copy)]
pub enum TooOld {
    /// 404 to everything.
    Unsupported,
    /// 404 to GET, 405 to the rest: `The API version does not allow …`.
    Disallowed(&'static str),
}

/// What all items of a resource have in common.
#[derive(Debug)]
pub struct ResourceSpec {
    /// Where the store keeps it.
    pub kind: ResourceKind,
    /// With its article: `a volume target`.
    pub one: &'static str,
    /// In messages of schemas: `target`.
    pub word: &'static str,
    /// Below `/v1`, also in links: `volume/targets`.
    pub path: &'static str,
    /// Key of lists: `targets`.
    pub list: &'static str,
    /// The minor version that brought it.
    pub since: u16,
    /// What is said before that.
    pub too_old: TooOld,
    /// The minor version since which lists take `detail`; none: never.
    pub detail: Option<u16>,
    /// The minor version since which it is found by name too; none: never.
    pub named: Option<u16>,
    /// Its fields, in the order in which messages list them, without those that all have.
    pub fields: &'static [Field],
    /// Those that lists show.
    pub short: &'static [&'static str],
    /// What lists can be filtered by, with since when.
    pub filters: &'static [(&'static str, u16)],
    /// Lists below it, as links.
    pub below: &'static [&'static str],
}

/// A resource of the API.
pub trait ResourceHandler: 'static {
    /// What is common to all of it.
    const SPEC: ResourceSpec;

    /// Check what the schema does not cover of a new resource, or of a changed one that was `old`, and complete it.
    fn validate(
        call: &Call,
        old: Option<&Resource>,
        new: Resource,
    ) -> impl Future<Output = Result<Resource, ApiError>> + Send;

    /// Write what follows from a new or changed one, once it is stored.
    fn written(
        _call: &Call,
        _old: Option<&Resource>,
        _new: &Resource,
    ) -> impl Future<Output = Result<(), ApiError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Check that it can be removed.
    fn may_go(_call: &Call, _resource: &Resource) -> impl Future<Output = Result<(), ApiError>> + Send {
        std::future::ready(Ok(()))
    }

    /// `filter` with the filters of the query; `None` if nothing can match.
    fn narrowed(
        call: &Call,
        filter: ResourceFilter,
    ) -> impl Future<Output = Result<Option<ResourceFilter>, ApiError>> + Send {
        equal(call, &Self::SPEC, filter)
    }

    /// Add to the view what is no field, or hide what must not be shown.
    fn extend_view(_call: &Call, _resource: &Resource, _view: &mut Map<String, Value>) {}

    /// The first required field that `given` lacks.
    fn missing(given: &Map<String, Value>) -> Option<&'static str> {
        let mut required = Self::SPEC.fields.iter().filter(|field| field.is_required());
        required.find(|field| !given.contains_key(field.name)).map(|field| field.name)
    }

    /// 400 for a query that wants to see `unknown` fields.
    fn unknown_fields(unknown: &[&str]) -> ApiError {
        shown::unknown_fields(unknown)
    }

    /// Text of the 409 for a key that another resource has.
    fn taken(resource: &Resource) -> String {
        format!("{} already exists.", resource.kind.noun())
    }
}

/// Filters that are fields which must be equal, and `node`, a node's UUID or name.
pub async fn equal(
    call: &Call,
    spec: &ResourceSpec,
    filter: ResourceFilter,
) -> Result<Option<ResourceFilter>, ApiError> {
    let mut filter = filter::of_node_asked(call, filter).await?;
    for (name, _) in spec.filters {
        if let (Some(field), Some(wanted)) = (ResourceField::named(name), call.args.text(name)) {
            filter = filter.with(field, wanted.into());
        }
    }
    Ok(Some(filter))
}

impl ResourceSpec {
    /// The field of this name.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().chain(field::COMMON).find(|field| field.name == name)
    }

    /// The value of a field as clients see it.
    pub fn read(&self, resource: &Resource, name: &str) -> Value {
        match name {
            "uuid" => resource.uuid.to_string().into(),
            "created_at" => iso(resource.created_at).into(),
            "updated_at" => at(resource.updated_at),
            "name" => text(resource.name.as_deref()),
            "node_uuid" => resource.node.map_or(Value::Null, |node| node.to_string().into()),
            name => match resource.field(name) {
                Value::Null => self.field(name).map_or(Empty::Null, |field| field.empty).value(),
                value => value.clone(),
            },
        }
    }

    /// Refuses versions before it; `otherwise` is the status of other methods than GET.
    pub fn exists(&self, call: &Call, otherwise: u16) -> Result<(), ApiError> {
        Self::since(call, self.since, self.too_old, otherwise)
    }

    /// The same of what has no fields.
    pub fn since(call: &Call, since: u16, too_old: TooOld, otherwise: u16) -> Result<(), ApiError> {
        if call.version.has(since) {
            return Ok(());
        }
        Err(match too_old {
            TooOld::Unsupported => ApiError::plain(404, "The API is not supported for this version"),
            TooOld::Disallowed(what) => {
                ApiError::plain(otherwise, format!("The API version does not allow {what}"))
            }
        })
    }

    /// The resource with this UUID or, where it has them, name.
    pub async fn find(&self, call: &Call, ident: &str) -> Result<Resource, ApiError> {
        if Uuid::parse_str(ident).is_err() {
            let Some(since) = self.named else {
                return Err(ApiError::invalid(format!("Expected UUID for {}_uuid: {ident}", self.word)));
            };
            if !is_logical_name(ident) {
                return Err(ApiError::invalid(format!(
                    "Expected UUID or name for {}_ident: {ident}",
                    self.word
                )));
            }
            if !call.version.has(since) {
                return Err(StoreError::not_found(self.kind, ident).into());
            }
        }
        Ok(call.app.store.resource(self.kind, ident).await?)
    }
}

/// An error of the store, in the words of the resource that was to be written.
pub fn refused<R: ResourceHandler>(error: StoreError, resource: &Resource) -> ApiError {
    let one = R::SPEC.one;
    let mut article = one.chars();
    let capital: String = article.next().into_iter().flat_map(char::to_uppercase).chain(article).collect();
    match error {
        StoreError::Duplicate { what: Unique::ResourceUuid, value } => {
            ApiError::conflict(format!("{capital} with UUID {value} already exists."))
        }
        StoreError::Duplicate { what: Unique::ResourceName, value } => {
            ApiError::conflict(format!("{capital} with name {value} already exists."))
        }
        StoreError::Duplicate { what: Unique::ResourceKey, .. } => ApiError::conflict(R::taken(resource)),
        StoreError::Stale(uuid) => ApiError::conflict(format!(
            "{} {uuid} was changed by another request, please retry.",
            resource.kind.noun()
        )),
        error @ StoreError::NotFound { what: Noun::Node, .. } => ApiError::from(error).of_body(),
        other => other.into(),
    }
}

/// A node that stands in a body, not in the path: 400 when there is none.
pub async fn owner(call: &Call, node: Uuid) -> Result<Node, ApiError> {
    call.app.store.node(node).await.map_err(|error| ApiError::from(error).of_body())
}

/// A node that a query or a body names: 400 when there is none.
pub async fn named_node(call: &Call, ident: &str) -> Result<Node, ApiError> {
    call.node(ident).await.map_err(ApiError::of_body)
}

/// 409 while the node is in the state INSPECTING, since 1.39; `what` is the object of the sentence.
pub fn not_while_inspecting(call: &Call, node: &Node, what: &str) -> Result<(), ApiError> {
    if node.provision_state != ProvisionState::Inspecting || !call.version.has(39) {
        return Ok(());
    }
    let node = node.uuid;
    Err(ApiError::conflict(format!("Cannot update {what} \"{node}\" while it is in state \"inspecting\".")))
}

/// The node of a resource once it is not locked, read after that: 400 when there is none.
///
/// # Errors
/// 409: it stays locked.
pub async fn unlocked(call: &Call, node: Uuid) -> Result<Node, ApiError> {
    let node = owner(call, node).await?;
    Lock::Held.opened(call, node).await.map_err(ApiError::of_body)
}

/// Names are RFC 3986 unreserved characters, and no UUIDs; `refuse` begins the message.
pub fn check_name(resource: &Resource, refuse: &str) -> Result<(), ApiError> {
    match &resource.name {
        Some(name) if !is_logical_name(name) || Uuid::parse_str(name).is_ok() => {
            Err(ApiError::invalid(format!("{refuse} '{name}'")))
        }
        _ => Ok(()),
    }
}
