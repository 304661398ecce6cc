//! What `anneal node why` says of a row, against what the API would do.

use super::{Broken, Write};
use model::request::{Policy, VerbRequest, apply_power, apply_verb};
use model::why::{By, Command, Facts, Why};
use model::{Contact, Node, Timestamp};

/// A node that waits for a user has a command that helps, and every command that is advised is one that is accepted.
pub fn every_row_has_an_answer_that_is_accepted(write: &Write) -> Broken {
    let policy = Policy { automated_clean: true };
    let (node, contact) = (write.new, Contact::default());
    let facts = Facts { node, contact: &contact, conductor: Some("sim"), locked_by: None, policy };
    let why = Why::of(&facts);
    if why.next.by == By::User && why.help.commands.is_empty() {
        return Err(format!("it waits for a user, and no command is named: {why:?}"));
    }
    let refused = |command: &Command| refusal(node, command, policy, write.now);
    match why.help.commands.iter().find_map(|advice| refused(&advice.command).map(|text| (advice, text))) {
        Some((advice, text)) => Err(format!("{:?} is advised and refused: {text}", advice.command)),
        None => Ok(()),
    }
}

fn refusal(node: &Node, command: &Command, policy: Policy, now: Timestamp) -> Option<String> {
    match command {
        Command::Verb(verb) => {
            let request = VerbRequest { rescue_hash: Some("hash".to_owned()), ..VerbRequest::of(*verb) };
            apply_verb(node, request, policy, now).err().map(|error| error.to_string())
        }
        Command::Power(target) => apply_power(node, *target, now).err().map(|error| error.to_string()),
        Command::UnsetMaintenance => (!node.maintenance).then(|| "it is in service".to_owned()),
        Command::UnsetRetired => (!node.retired).then(|| "it is not retired".to_owned()),
        Command::UnsetProtected => (!node.protected).then(|| "it is not protected".to_owned()),
        Command::SetAgentKind(_) => None,
        Command::AcceptMeasurements => {
            let waits = node.tpm.as_ref().is_some_and(|tpm| tpm.changed.is_some());
            (!waits).then(|| "no measurements of it wait for that".to_owned())
        }
        Command::RetireDisk(name) => {
            let known = node.disks.known.iter().any(|disk| disk.name() == name);
            (!known).then(|| format!("it has no disk {name}"))
        }
    }
}
