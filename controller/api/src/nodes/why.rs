//! `/v1/anneal/nodes/{ident}/why`: why the node stands where it does, and which command helps. An extension of Anneal's, so no
//! microversion guards it.

use crate::call::{Call, json};
use crate::error::{ApiError, Reply};
use crate::format::{at, iso, text};
use axum::extract::Path;
use model::request::Policy;
use model::why::{Advice, Facts, Tried, Why};
use model::{Contact, Logs, Node, Timestamp};
use serde_json::{Value, json};

/// In the place of a text that the caller may not see.
const HIDDEN: &str = "** Value Redacted - Requires baremetal:node:get:last_error permission. **";

/// `GET …`.
pub async fn show(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    let found = reasons(&call, vec![call.node(&ident).await?]).await?;
    let NodeReason { node, why, .. } =
        found.into_iter().next().ok_or_else(|| ApiError::internal("a node"))?;
    Ok(json(200, &view(&node, &why, call.now())))
}

/// A node with the answer, both as the caller may see them.
pub(crate) struct NodeReason {
    pub node: Node,
    pub contact: Contact,
    pub conductor: Option<String>,
    pub why: Why,
}

/// Why these nodes stand where they do, with one read of the store for each kind of what is gathered.
pub(crate) async fn reasons(call: &Call, nodes: Vec<Node>) -> Result<Vec<NodeReason>, ApiError> {
    let uuids: Vec<_> = nodes.iter().map(|node| node.uuid).collect();
    let contacts = call.app.store.contacts(&uuids).await?;
    let mut holders = call.app.store.lease_holders(&uuids, call.now()).await?;
    let found = nodes.into_iter().zip(contacts).map(|(mut node, mut contact)| {
        if !may_see_errors(call, &node) {
            hide_errors(&mut node);
        }
        if !call.may_see("baremetal:node:get:driver_internal_info", &node) {
            contact.rival = None;
            contact.boot = None;
        }
        let holder = holders.remove(&node.uuid);
        let conductor = call.app.members.driver_of(&node);
        let why = Why::of(&Facts {
            node: &node,
            contact: &contact,
            conductor: conductor.as_deref(),
            locked_by: holder.as_deref().filter(|_| call.may_see("baremetal:node:get:reservation", &node)),
            policy: Policy { automated_clean: call.app.settings.automated_clean },
        });
        NodeReason { node, contact, conductor, why }
    });
    Ok(found.collect())
}

/// A command that helps, with what it asks for in words of the API.
pub(crate) fn advice(node: &Node, advice: &Advice) -> Value {
    let named = node.name.clone().unwrap_or_else(|| node.uuid.to_string());
    let Advice { command, does } = advice;
    json!({
        "command": command.line(&named),
        "does": does,
        "action": command.action(),
        "verb": command.target().filter(|_| command.action() == "verb"),
        "target": command.target(),
    })
}

/// Whether the caller sees what a view of the node shows in `last_error` and `driver_internal_info`.
fn may_see_errors(call: &Call, node: &Node) -> bool {
    ["baremetal:node:get:last_error", "baremetal:node:get:driver_internal_info"]
        .into_iter()
        .all(|policy| call.may_see(policy, node))
}

/// The texts of BMC and agent, wherever the row has them.
fn hide_errors(node: &mut Node) {
    let hide = |text: &mut Option<String>| {
        if text.is_some() {
            *text = Some(HIDDEN.to_owned());
        }
    };
    hide(&mut node.last_error);
    hide(&mut node.maintenance_reason);
    // The reason of a wait can quote an answer. Without it the answer states what the next action needs.
    node.wait = None;
    if let Some(run) = &mut node.run {
        hide(&mut run.hung);
        if let Some(Logs::Missing(_)) = run.logs {
            run.logs = Some(Logs::Missing(HIDDEN.to_owned()));
        }
    }
}

/// The body of the answer. Every instant is given with its distance from `now` in whole seconds.
fn view(node: &Node, why: &Why, now: Timestamp) -> Value {
    let age = |at: Option<Timestamp>| at.map(|at| now.since(at).as_secs());
    let distance = |at: Option<Timestamp>| at.map(|at| at.0.saturating_sub(now.0) / 1_000_000);
    let tried = |tried: &Tried| json!({"text": tried.text, "at": at(tried.at), "age_s": age(tried.at)});
    let named = node.name.clone().unwrap_or_else(|| node.uuid.to_string());
    let advice = |advice: &Advice| json!({"command": advice.command.line(&named), "does": advice.does});
    let (awaits, next) = (&why.awaits, &why.next);
    json!({
        "uuid": node.uuid,
        "name": text(node.name.as_deref()),
        "provision_state": node.provision_state.as_str(),
        "now": iso(now),
        "waits_for": {
            "what": awaits.what.as_str(),
            "text": awaits.text,
            "since": at(awaits.since),
            "age_s": age(awaits.since),
            "until": at(awaits.until),
            "in_s": distance(awaits.until),
        },
        "tried": why.tried.iter().map(tried).collect::<Vec<_>>(),
        "next": {"by": next.by.as_str(), "text": next.text, "at": at(next.at), "in_s": distance(next.at)},
        "help": {"text": why.help.text, "commands": why.help.commands.iter().map(advice).collect::<Vec<_>>()},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::Cursor;
    use model::{ProvisionState, Run, RunKind, Wait};
    use uuid::Uuid;

    const S: i64 = 1_000_000;

    fn body(node: &Node, now: i64) -> String {
        let facts = Facts {
            node,
            contact: &Contact { last_heartbeat_at: Some(Timestamp(70 * S)), ..Contact::default() },
            conductor: Some("c1"),
            locked_by: None,
            policy: Policy { automated_clean: true },
        };
        view(node, &Why::of(&facts), Timestamp(now)).to_string()
    }

    fn node(state: ProvisionState) -> Node {
        let mut node = Node::enrolled(Uuid::from_u128(7), "fake-hardware", Timestamp(0));
        node.provision_state = state;
        node.provision_updated_at = Some(Timestamp(60 * S));
        node
    }

    /// Exact bytes, on which clients rely: never edit them.
    #[test]
    fn frozen_a_node_that_boots() {
        let run = Run { cursor: Cursor::AwaitAgent, ..Run::new(RunKind::AutomatedClean, Timestamp(60 * S)) };
        let wait = Wait {
            reason: "the ramdisk to boot and its agent to send a heartbeat".to_owned(),
            since: Timestamp(65 * S),
            deadline: Some(Timestamp(1865 * S)),
        };
        let node = Node { run: Some(run), wait: Some(wait), ..node(ProvisionState::CleanWait) };
        assert_eq!(body(&node, 100 * S), FROZEN_BOOTS);
    }

    #[test]
    fn frozen_a_failed_cleaning() {
        let mut node = Node { name: Some("n1".to_owned()), ..node(ProvisionState::CleanFail) };
        node.last_error = Some("Clean step deploy.erase_devices failed".to_owned());
        assert_eq!(body(&node, 100 * S + 999_999), FROZEN_FAILED);
    }

    const FROZEN_BOOTS: &str = concat!(
        r#"{"help":{"commands":[{"command":"anneal node abort 00000000-0000-0000-0000-000000000007","#,
        r#""does":"stops what is under way; a step that cannot be stopped ends first"}],"#,
        r#""text":"no command is needed: the controller goes on by itself"},"name":null,"#,
        r#""next":{"at":"1970-01-01T00:31:05+00:00","by":"controller","in_s":1765,"#,
        r#""text":"its first heartbeat lets the run go on; without one until then the run fails"},"now":"1970-01-01T00:01:40+00:00","#,
        r#""provision_state":"clean wait","tried":[{"age_s":30,"at":"1970-01-01T00:01:10+00:00","#,
        r#""text":"the agent's last heartbeat"},{"age_s":40,"at":"1970-01-01T00:01:00+00:00","#,
        r#""text":"the run automated_clean began"}],"uuid":"00000000-0000-0000-0000-000000000007","#,
        r#""waits_for":{"age_s":35,"in_s":1765,"since":"1970-01-01T00:01:05+00:00","#,
        r#""text":"the ramdisk to boot and its agent to send a heartbeat","until":"1970-01-01T00:31:05+00:00","what":"ramdisk"}}"#,
    );
    const FROZEN_FAILED: &str = concat!(
        r#"{"help":{"commands":[{"command":"anneal node provide n1","#,
        r#""does":"cleans it again and makes it available"},{"command":"anneal node manage n1","#,
        r#""does":"leaves the node as it is, manageable"}],"#,
        r#""text":"when the cause is removed, these commands lead out of the state, the usual one first"},"name":"n1","#,
        r#""next":{"at":null,"by":"user","in_s":null,"#,
        r#""text":"nothing happens before a command"},"now":"1970-01-01T00:01:40.999999+00:00","#,
        r#""provision_state":"clean failed","tried":[{"age_s":40,"at":"1970-01-01T00:01:00+00:00","#,
        r#""text":"the last error: Clean step deploy.erase_devices failed"}],"#,
        r#""uuid":"00000000-0000-0000-0000-000000000007","#,
        r#""waits_for":{"age_s":40,"in_s":null,"since":"1970-01-01T00:01:00+00:00","#,
        r#""text":"a user: its cleaning failed or was aborted","until":null,"what":"user"}}"#,
    );
}
