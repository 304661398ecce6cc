//! A resource as clients see it.

use super::field;
use super::resource::ResourceHandler;
use crate::call::Call;
use crate::error::ApiError;
use model::Resource;
use serde_json::{Map, Value};

/// Check the fields that a client wants to see: 406 for one too new, 400 for one that does not exist.
pub fn check_wanted<R: ResourceHandler>(call: &Call, wanted: &[String]) -> Result<(), ApiError> {
    let known =
        |name: &str| R::SPEC.field(name).is_some() || name == "links" || R::SPEC.below.contains(&name);
    let unknown: Vec<_> = wanted.iter().map(String::as_str).filter(|name| !known(name)).collect();
    if !unknown.is_empty() {
        return Err(R::unknown_fields(&unknown));
    }
    wanted.iter().filter_map(|name| R::SPEC.field(name)).try_for_each(|field| call.version.needs(field.since))
}

/// The resource in the wanted fields, or in all.
pub fn view<R: ResourceHandler>(call: &Call, resource: &Resource, wanted: Option<&[String]>) -> Value {
    let spec = &R::SPEC;
    let wants = |name: &str| wanted.is_none_or(|names| names.iter().any(|wanted| wanted == name));
    let mut view: Map<_, _> = spec
        .fields
        .iter()
        .chain(field::COMMON)
        .filter(|field| call.version.has(field.since) && wants(field.name))
        .map(|field| (field.name.to_owned(), spec.read(resource, field.name)))
        .collect();
    let path = format!("{}/{}", spec.path, resource.uuid);
    for below in spec.below.iter().filter(|below| wants(below)) {
        view.insert((*below).to_owned(), call.links.pair(&format!("{path}/{below}")));
    }
    view.insert("links".into(), call.links.pair(&path));
    R::extend_view(call, resource, &mut view);
    Value::Object(view)
}
