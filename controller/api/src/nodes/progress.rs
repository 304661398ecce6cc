//! `/v1/anneal/nodes/{ident}/progress`: where a node stands and how far its run is, as JSON or as a stream. An extension of
//! Anneal's, so no microversion guards it.

use super::why::{NodeReason, advice, reasons};
use crate::call::Call;
use crate::error::{ApiError, Reply};
use crate::format::{at, iso, text};
use crate::server_sent::{self, Subject};
use async_trait::async_trait;
use axum::extract::Path;
use axum::http::HeaderMap;
use model::{Contact, Cursor, Node, PlannedStep, Run};
use serde_json::{Value, json};
use std::time::Duration;
use store::StoreError;
use uuid::Uuid;

/// `GET …`.
pub async fn show(Path(ident): Path<String>, headers: HeaderMap, call: Call) -> Reply {
    call.args.only(&[])?;
    let node = call.node(&ident).await?.uuid;
    let listen = |call: &Call| call.app.nodes.listen(&call.unscoped_app.store, Some(node));
    server_sent::show(&headers, call, Progress { node }, &listen).await
}

/// A node, by its UUID: it may get another name meanwhile.
struct Progress {
    node: Uuid,
}

#[async_trait]
impl Subject for Progress {
    const EVENT: &'static str = "progress";
    const GAP: Duration = Duration::from_millis(500);

    async fn read(&self, call: &Call) -> Result<Option<Value>, ApiError> {
        let node = match call.app.store.node(self.node).await {
            Ok(node) => node,
            Err(StoreError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let found = reasons(call, vec![node]).await?.pop();
        Ok(found.map(|found| view(call, &found)))
    }
}

fn view(call: &Call, found: &NodeReason) -> Value {
    let NodeReason { node, contact, conductor, why } = found;
    // What a view of the node has in `driver_internal_info`.
    let inside = call.may_see("baremetal:node:get:driver_internal_info", node);
    let (awaits, next) = (&why.awaits, &why.next);
    json!({
        "uuid": node.uuid,
        "name": text(node.name.as_deref()),
        "provision_state": node.provision_state.as_str(),
        "target_provision_state": node.target_provision_state.map(|state| state.as_str()),
        "provision_updated_at": at(node.provision_updated_at),
        "power_state": node.power_state.map(|state| state.as_str()),
        "target_power_state": node.target_power_state.map(|target| target.as_str()),
        "maintenance": node.maintenance,
        "maintenance_reason": text(node.maintenance_reason.as_deref()),
        "fault": text(node.fault.as_deref()),
        "last_error": text(node.last_error.as_deref()),
        "retired": node.retired,
        "conductor": text(conductor.as_deref()),
        "waits_for": {
            "what": awaits.what.as_str(),
            "text": awaits.text,
            "since": at(awaits.since),
            "until": at(awaits.until),
        },
        "next": {"by": next.by.as_str(), "text": next.text, "at": at(next.at)},
        "tried": why.tried.iter().map(|tried| json!({"text": tried.text, "at": at(tried.at)})).collect::<Vec<_>>(),
        "help": {
            "text": why.help.text,
            "commands": why.help.commands.iter().map(|one| advice(node, one)).collect::<Vec<_>>(),
        },
        "run": node.run.as_ref().map(|run| run_view(run, inside)),
        "agent": agent(contact).filter(|_| inside),
        "progress": progress(node, contact).filter(|_| inside),
    })
}

/// The run, and its steps in the order of the plan; none before the plan is made.
fn run_view(run: &Run, inside: bool) -> Value {
    let steps = run.plan.iter().flatten().enumerate();
    let steps: Vec<Value> = steps.map(|(index, planned)| step(run, index, planned, inside)).collect();
    json!({
        "id": run.id,
        "kind": run.kind.as_str(),
        "started_at": iso(run.started_at),
        "is_active": run.is_active(),
        "abort": run.abort,
        "interruptions": run.interruptions,
        "steps": steps,
    })
}

fn step(run: &Run, index: usize, planned: &PlannedStep, inside: bool) -> Value {
    let ended = run.success(index).or_else(|| run.results.iter().rfind(|result| result.index == index));
    let is_current = run.is_active() && run.index == Some(index);
    let (state, when) = match ended {
        Some(result) if result.error.is_none() => ("done", Some(result.at)),
        Some(result) if !is_current => ("failed", Some(result.at)),
        _ if is_current => ("running", began(&run.cursor)),
        _ => ("pending", None),
    };
    let error = ended.and_then(|result| result.error.as_deref()).filter(|_| inside);
    json!({
        "index": index,
        "step": planned.label(),
        "priority": planned.step.priority,
        "state": state,
        "at": at(when),
        "error": error,
        "certificate": ended.and_then(|result| result.certificate.as_deref()),
    })
}

/// When the execution of the current step began, where that is stored.
fn began(cursor: &Cursor) -> Option<model::Timestamp> {
    match cursor {
        Cursor::Issued { at, .. } | Cursor::OutOfBand { at, .. } => Some(*at),
        Cursor::Pause { since, .. } | Cursor::AwaitHello { since, .. } => Some(*since),
        _ => None,
    }
}

/// The agent, once it was heard.
fn agent(contact: &Contact) -> Option<Value> {
    let heard = contact.last_heartbeat_at?;
    Some(json!({
        "version": contact.agent_version,
        "last_heartbeat_at": iso(heard),
        "progress_at": at(contact.progress_at),
    }))
}

/// How far the current step is, by the agent that runs it. What it reported of another command is over.
fn progress(node: &Node, contact: &Contact) -> Option<Value> {
    let (run, state) = (node.run.as_ref()?, contact.anneal()?);
    let command = run.command_id()?;
    state.progress.clone().filter(|_| state.running.as_deref() == Some(command))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::agent::{AgentKind, AgentState};
    use model::{RunKind, StepResult, Timestamp};

    const S: i64 = 1_000_000;

    fn planned(step: &str) -> PlannedStep {
        serde_json::from_value(json!({"interface": "deploy", "step": step, "priority": 10})).unwrap()
    }

    fn run() -> Run {
        let mut run = Run::new(RunKind::AutomatedClean, Timestamp(0));
        run.plan = Some(vec![planned("one"), planned("two"), planned("three")]);
        run.results = vec![StepResult::success(0, "c0".to_owned(), Timestamp(5 * S), Value::Null)];
        run.index = Some(1);
        run.cursor = Cursor::Issued {
            command_id: "c1".to_owned(),
            at: Timestamp(6 * S),
            boot_id: None,
            process_id: None,
            accepted: true,
        };
        run
    }

    #[test]
    fn each_step_says_how_far_it_is() {
        let mut run = run();
        let states = |run: &Run| {
            let view = run_view(run, true);
            let steps = view["steps"].as_array().unwrap().clone();
            steps.iter().map(|step| step["state"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(states(&run), ["done", "running", "pending"]);
        assert_eq!(run_view(&run, true)["steps"][1]["at"], "1970-01-01T00:00:06+00:00");
        let failure = StepResult {
            error: Some("the disk is gone".to_owned()),
            ..StepResult::success(1, "c1".to_owned(), Timestamp(7 * S), Value::Null)
        };
        run.results.push(failure);
        run.cursor = Cursor::Done;
        assert_eq!(states(&run), ["done", "failed", "pending"]);
        assert_eq!(run_view(&run, true)["steps"][1]["error"], "the disk is gone");
        assert_eq!(
            run_view(&run, false)["steps"][1]["error"],
            Value::Null,
            "for users who do not see inside"
        );
    }

    #[test]
    fn progress_of_another_command_is_not_shown() {
        let mut node = Node::enrolled(Uuid::from_u128(7), "fake-hardware", Timestamp(0));
        node.run = Some(run());
        let reports = |running: &str| Contact {
            agent: Some(AgentKind::Anneal(AgentState {
                boot_id: "b".to_owned(),
                process_id: "p".to_owned(),
                evidence_key: None,
                running: Some(running.to_owned()),
                ended: Vec::new(),
                progress: Some(json!({"disks": []})),
            })),
            ..Contact::default()
        };
        assert_eq!(progress(&node, &reports("c1")), Some(json!({"disks": []})));
        assert_eq!(progress(&node, &reports("c0")), None);
        node.run = None;
        assert_eq!(progress(&node, &reports("c1")), None);
    }
}
