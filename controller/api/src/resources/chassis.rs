//! `/v1/chassis`: groups of nodes.

use super::field::{Type, Write, object, written};
use super::resource::{ResourceHandler, ResourceSpec, TooOld};
use super::{list, write};
use crate::call::Call;
use crate::endpoint::{Endpoint, rows};
use crate::error::ApiError;
use crate::nodes;
use crate::schema::Kind;
use model::{Resource, ResourceKind};
use store::{NodeField, NodeFilter, NodeQuery};

/// A chassis.
pub struct Chassis;

/// Endpoints of chassis.
pub fn endpoints() -> Vec<Endpoint> {
    rows![
        GET "/v1/chassis" 1 "baremetal:chassis:get", "chassis" => list::list::<Chassis>;
        POST "/v1/chassis" 1 "baremetal:chassis:create", "add one" => write::create::<Chassis>;
        GET "/v1/chassis/detail" 1 "baremetal:chassis:get", "chassis with all fields" => list::detail::<Chassis>;
        GET "/v1/chassis/{ident}" 1 "baremetal:chassis:get", "a chassis" => list::show::<Chassis>;
        PATCH "/v1/chassis/{ident}" 1 "baremetal:chassis:update", "change it" => write::patch::<Chassis>;
        DELETE "/v1/chassis/{ident}" 1 "baremetal:chassis:delete", "remove it" => write::delete::<Chassis>;
        GET "/v1/chassis/{ident}/nodes" 1 "baremetal:node:list_all", "nodes of a chassis" => nodes::list::of_chassis;
        GET "/v1/chassis/{ident}/nodes/detail" 1 "baremetal:node:list_all", "the same with all fields"
            => nodes::list::of_chassis_detail;
    ]
}

impl ResourceHandler for Chassis {
    const SPEC: ResourceSpec = ResourceSpec {
        kind: ResourceKind::Chassis,
        one: "a chassis",
        word: "chassis",
        path: "chassis",
        list: "chassis",
        since: 1,
        too_old: TooOld::Unsupported,
        detail: Some(43),
        named: None,
        fields: &[object("extra", 1), written("description", 1, Write::Always(Type::Plain(Kind::Text(255))))],
        short: &["uuid", "description"],
        filters: &[],
        below: &["nodes"],
    };

    async fn validate(_: &Call, _: Option<&Resource>, new: Resource) -> Result<Resource, ApiError> {
        Ok(new)
    }

    async fn may_go(call: &Call, chassis: &Resource) -> Result<(), ApiError> {
        let uuid = chassis.uuid.to_string();
        let filter = NodeFilter {
            equal: vec![(NodeField::ChassisUuid, uuid.as_str().into())],
            ..NodeFilter::default()
        };
        if !call.app.store.node_page(NodeQuery::first(1, filter)).await?.nodes.is_empty() {
            return Err(ApiError::invalid(format!(
                "Cannot complete the requested action because chassis {uuid} contains nodes."
            )));
        }
        Ok(())
    }
}
