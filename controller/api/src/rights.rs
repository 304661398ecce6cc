//! `/v1/anneal/rights`: who the caller is and what the caller may do, of which the API says no more than each answer 403 would. An
//! extension of Anneal's, so no microversion guards it.

use crate::auth::policy;
use crate::call::{Call, json};
use crate::endpoint::{Endpoint, rows};
use crate::error::{ApiError, Reply};
use crate::nodes::power::turns_off;
use crate::nodes::why::{NodeReason, reasons};
use crate::session::who;
use axum::extract::Path;
use model::offer::{Offer, Risk, offers};
use model::request::{Policy, check_power};
use model::{Node, PowerTarget, Verb};
use serde_json::{Value, json};

/// Endpoints of rights.
pub fn endpoints() -> Vec<Endpoint> {
    let rows = rows![
        GET "/v1/anneal/rights" 1 "anneal:rights:get", "who the caller is, and what the caller may do" => own;
        GET "/v1/anneal/nodes/{ident}/rights" 1 "baremetal:node:get", "what the caller may say to a node now" => of_node;
    ];
    rows.into_iter().map(Endpoint::own).collect()
}

/// `GET /v1/anneal/rights`.
async fn own(call: Call) -> Reply {
    call.args.only(&[])?;
    let mut shown = who(&call.identity);
    shown["policies"] = policy::names().filter(|name| policy::might(name, &call.identity)).collect();
    Ok(json(200, &shown))
}

/// `GET /v1/anneal/nodes/{ident}/rights`.
async fn of_node(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    let node = call.node(&ident).await?;
    let policy = Policy { automated_clean: call.app.settings.automated_clean };
    let offers = offers(&node, policy);
    let found = reasons(&call, vec![node]).await?.pop().ok_or_else(|| ApiError::internal("a node"))?;
    let NodeReason { node, why, .. } = found;
    let usual: Vec<&str> = why.help.commands.iter().filter_map(|advice| advice.command.target()).collect();
    let verbs: Vec<Value> = offers.into_iter().map(|offer| verb(&call, &node, offer, &usual)).collect();
    let power: Vec<Value> = PowerTarget::ALL.into_iter().map(|target| power(&call, &node, target)).collect();
    let may = |policy: &str| call.may(policy, &node);
    let of_node = policy::names()
        .filter(|name| name.starts_with("baremetal:node:") || name.starts_with("anneal:node:"));
    Ok(json(
        200,
        &json!({
            "uuid": node.uuid,
            "name": node.name,
            "provision_state": node.provision_state.as_str(),
            "verbs": verbs,
            "power": power,
            "maintenance": {
                "set": may("baremetal:node:set_maintenance"),
                "unset": may("baremetal:node:clear_maintenance"),
            },
            "delete": may("baremetal:node:delete") || may("baremetal:node:delete:self_owned_node"),
            "policies": of_node.filter(|name| may(name)).collect::<Vec<_>>(),
        }),
    ))
}

/// The policy that a verb needs besides that of all verbs.
fn own_policy(verb: Verb) -> Option<&'static str> {
    match verb {
        Verb::Override => Some("anneal:node:override"),
        Verb::Clean => Some("baremetal:node:set_provision_state:clean_steps"),
        Verb::Service => Some("baremetal:node:set_provision_state:service_steps"),
        _ => None,
    }
}

fn verb(call: &Call, node: &Node, offer: Offer, usual: &[&str]) -> Value {
    let needed = ["baremetal:node:set_provision_state"].into_iter().chain(own_policy(offer.verb));
    let denied = needed.into_iter().find(|policy| !call.may(policy, node));
    let why_not = match (denied, &offer.refused) {
        (Some(policy), _) => Some(format!("your role does not allow it ({policy})")),
        (None, Some(refused)) => Some(refused.to_string()),
        (None, None) => None,
    };
    json!({
        "verb": offer.verb.target(),
        "does": offer.does,
        "usual": usual.contains(&offer.verb.target()),
        "risk": offer.risk.map(Risk::as_str),
        "question": offer.risk.map(Risk::consequence),
        "needs": offer.needs,
        "allowed": why_not.is_none(),
        "why_not": why_not,
    })
}

fn power(call: &Call, node: &Node, target: PowerTarget) -> Value {
    let policy = "baremetal:node:set_power_state";
    let why_not = match (call.may(policy, node), check_power(node)) {
        (false, _) => Some(format!("your role does not allow it ({policy})")),
        (true, Err(refused)) => Some(refused.to_string()),
        (true, Ok(())) if turns_off(target) && node.never_powers_off() => {
            Some("the node is never powered off (disable_power_off)".to_owned())
        }
        (true, Ok(())) => None,
    };
    let risk = (target != PowerTarget::On).then_some(Risk::Interrupt);
    json!({
        "target": target.as_str(),
        "risk": risk.map(Risk::as_str),
        "question": risk.map(Risk::consequence),
        "allowed": why_not.is_none(),
        "why_not": why_not,
    })
}
