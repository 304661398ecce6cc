//! Erasing disks.

use super::{Examination, ScenarioResult};
use crate::session::Session;
use crate::{Rule, Violation};
use agent_protocol::inventory::Disk;
use hwm_sdk::protocol::{AskErase, AskEraseParams, Erase, EraseCapabilities, EraseParams};

fn capabilities(
    session: &mut Session,
    examination: &mut Examination,
    disk: &Disk,
) -> Result<EraseCapabilities, Violation> {
    let params = AskEraseParams { disk: disk.clone() };
    let (late, rule) = (Rule::EraseCapabilitiesDeadline, Rule::EraseCapabilities);
    let within = examination.plan.deadlines.erase_capabilities;
    let answer = session.call::<AskErase>(&params, within, late, rule)?;
    let refused = |error| Violation::new(rule, format!("erase_capabilities was refused: {error}"));
    let capabilities = answer.map_err(refused)?;
    examination.judge(late, None)?;
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let mut methods = capabilities.methods.iter().flatten();
    let bad = methods.find(|method| !is_word(&method.method));
    let none = capabilities.methods.as_ref().is_some_and(Vec::is_empty);
    let none = none.then(|| format!("{}: an empty list; null declines", disk.name));
    examination.judge(rule, bad.map(|bad| format!("{:?} is no name of a method", bad.method)).or(none))?;
    Ok(capabilities)
}

/// A disk that no manager knows.
pub(crate) fn unknown_disk(session: &mut Session, examination: &mut Examination) -> ScenarioResult {
    examination.get_ready(session)?;
    let disk = Disk {
        name: "/dev/conformance".into(),
        model: Some("of no vendor".into()),
        size: 1 << 30,
        serial: Some("conformance".into()),
        ..Disk::default()
    };
    let offered = capabilities(session, examination, &disk)?.methods;
    let seen = offered.map(|methods| format!("a disk that it cannot know can be erased with {methods:?}"));
    examination.judge(Rule::Declines, seen)?;
    let params = EraseParams { disk, method: "any".into() };
    let within = examination.plan.deadlines.run;
    let answer = session.call::<Erase>(&params, within, Rule::RunDeadline, Rule::Erase)?;
    let seen = answer.ok().map(|_| "a disk that was declined is said to be erased".to_owned());
    examination.judge(Rule::EraseRefused, seen)
}

/// Disks of the machine; those of the plan are erased.
pub(crate) fn asked_for(session: &mut Session, examination: &mut Examination) -> ScenarioResult {
    examination.get_ready(session)?;
    let plan = examination.plan;
    for disk in &plan.inventory.disks {
        let offered = capabilities(session, examination, disk)?.methods.unwrap_or_default();
        for method in offered.into_iter().filter(|_| plan.erases.contains(&disk.name)) {
            let params = EraseParams { disk: disk.clone(), method: method.method.clone() };
            let within = plan.deadlines.run;
            let answer = session.call::<Erase>(&params, within, Rule::RunDeadline, Rule::Erase)?;
            let seen = match answer {
                Err(error) => Some(format!("{}: {error}", disk.name)),
                Ok(answer) => (answer.record.method != method.method).then(|| {
                    format!(
                        "{} was erased with {:?}, not {:?}",
                        disk.name, answer.record.method, method.method
                    )
                }),
            };
            examination.judge(Rule::Erase, seen)?;
        }
    }
    Ok(())
}
