//! What an agent that signs reports of its erases, and what the controller makes of it.

use crate::world::{Command, DISKS, Lack, State, World};
use agent_protocol::record::EraseReport;
use conductor::SigningKey;
use model::{Node, StepKind};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::OnceLock;

/// The key of every agent in here. That another's counts for nothing is the crate `certificate`'s to test.
pub fn key() -> &'static SigningKey {
    static KEY: OnceLock<SigningKey> = OnceLock::new();
    KEY.get_or_init(|| SigningKey::generate().unwrap_or_else(|error| panic!("{error}")).0)
}

/// The result of the command of an erase, whose step is called `deploy.NAME`.
pub fn result(world: &World, process: u32, name: &str, command: &Command) -> Value {
    let mut disks: Vec<_> =
        DISKS.iter().map(|serial| room::erased(name, &format!("/dev/{serial}"), serial, 1 << 20)).collect();
    match command.state {
        State::Unproven(Lack::Report) => return Value::Null,
        State::Unproven(Lack::Signature) => {
            let report = EraseReport { disks, ..EraseReport::default() };
            return json!({ StepKind::Clean.result_field(): report });
        }
        State::Unproven(Lack::Disk) => drop(disks.pop()),
        _ => {}
    }
    let agent = (format!("boot-{}", world.machine.power.boot), format!("process-{process}"));
    let node = world.node().uuid.to_string();
    // The same command is asked about in many worlds, and a signature takes long.
    SIGNED.with_borrow_mut(|signed| {
        let place = (agent.clone(), command.id.clone(), command.state);
        let made = || room::signed_clean_result(key(), (&agent.0, &agent.1), &node, &command.id, name, disks);
        signed.entry(place).or_insert_with(made).clone()
    })
}

/// Boot, process, command, and how that ended.
type Place = ((String, String), String, State);

thread_local! {
    static SIGNED: RefCell<HashMap<Place, Value>> = RefCell::default();
}

/// The certificate of the evidence that came with this command, as `conductor/src/drive/record.rs` notes it.
pub fn certify(node: &mut Node, command_id: &str) {
    let results = node.run.iter_mut().flat_map(|run| &mut run.results);
    for result in results.filter(|result| result.command_id == command_id) {
        result.certificate = Some(format!("of-{command_id}"));
    }
}
