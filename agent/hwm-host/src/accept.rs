//! What of a manager's answers is taken. Pure: the answer in, what is kept and what was dropped out.

use bundle::Manifest;
use hwm_sdk::protocol::{
    HelloAnswer, INTERFACES, StepOffer, VERSION, bad_manager_name, bad_step_name, is_reserved_manager,
    is_reserved_step,
};
use std::collections::BTreeSet;

/// Most steps of one kind.
const STEPS: usize = 256;

/// Why a manager with this manifest is not started at all.
pub(super) fn refusal(manifest: &Manifest) -> Option<String> {
    if is_reserved_manager(&manifest.name) {
        return Some(format!("the name {} is one of Anneal's own", manifest.name));
    }
    if !manifest.protocol_versions.contains(&VERSION) {
        return Some(format!(
            "it speaks the protocol versions {:?}, and this agent {VERSION}",
            manifest.protocol_versions
        ));
    }
    bad_manager_name(&manifest.name)
}

/// Whether it is who its manifest says; else what it lies about.
pub(super) fn hello(answer: &HelloAnswer, manifest: &Manifest) -> Result<(), String> {
    let same = |what: &str, said: &str, signed: &str| {
        if said == signed {
            Ok(())
        } else {
            Err(format!("its {what} is {said:?} and {signed:?} in its manifest"))
        }
    };
    if answer.protocol_version != VERSION {
        return Err(format!(
            "it answers in protocol version {}, offered was {VERSION}",
            answer.protocol_version
        ));
    }
    same("name", &answer.name, &manifest.name)?;
    same("version", &answer.version, &manifest.version)
}

/// The steps that are taken, and a sentence for each that is not. `own` are the steps of the agent itself.
pub(super) fn steps(offers: Vec<StepOffer>, own: &BTreeSet<String>) -> (Vec<StepOffer>, Vec<String>) {
    let (mut taken, mut dropped) = (Vec::<StepOffer>::new(), Vec::new());
    for offer in offers {
        let problem = if let Some(problem) = bad_step_name(&offer.step) {
            Some(problem)
        } else if is_reserved_step(&offer.interface, &offer.step) {
            Some("it is reserved".to_owned())
        } else if own.contains(&offer.step) {
            Some("it is a step of the agent's own".to_owned())
        } else if !INTERFACES.contains(&offer.interface.as_str()) {
            Some("its interface is not known".to_owned())
        } else if taken.iter().any(|other| other.step == offer.step) {
            Some("it is offered twice".to_owned())
        } else if taken.len() >= STEPS {
            Some(format!("there are more than {STEPS}"))
        } else {
            None
        };
        match problem {
            None => taken.push(offer),
            Some(problem) => {
                let name: String = format!("{}.{}", offer.interface, offer.step).chars().take(64).collect();
                dropped.push(format!("step {name:?} was left out: {problem}"));
            }
        }
    }
    dropped.truncate(STEPS);
    (taken, dropped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(interface: &str, step: &str) -> StepOffer {
        StepOffer { interface: interface.into(), step: step.into(), ..StepOffer::default() }
    }

    #[test]
    fn reserved_steps_and_those_of_the_agent_are_not_taken() {
        let own = BTreeSet::from(["verify_firmware".to_owned()]);
        let offers = [
            ("raid", "create"),
            ("deploy", "erase_devices"),
            ("deploy", "erase_devices_metadata"),
            ("power", "cycle"),
            ("deploy", "verify_firmware"),
            ("raid", "create"),
            ("raid", "Create"),
            ("plumbing", "flush"),
        ];
        let (taken, dropped) = steps(offers.map(|(interface, step)| offer(interface, step)).to_vec(), &own);
        assert_eq!(taken, [offer("raid", "create")]);
        assert_eq!(dropped.len(), 7, "{dropped:?}");
        assert!(dropped[0].contains("deploy.erase_devices") && dropped[0].contains("reserved"));
    }

    #[test]
    fn a_manager_is_who_its_manifest_says() {
        let manifest: Manifest = serde_json::from_value(serde_json::json!({
            "format": 1, "name": "acme", "version": "1.0", "vendor": "ACME", "entry": ["/x"],
            "protocol_versions": [1], "root_sha256": "", "root_size": 0,
            "grants": {"network": false, "scratch_mib": 1, "memory_mib": 16, "pids": 1},
        }))
        .expect("a manifest");
        assert_eq!(refusal(&manifest), None);
        for name in ["generic_hardware_manager", "anneal_x", "Acme", "a-b"] {
            assert!(refusal(&Manifest { name: name.into(), ..manifest.clone() }).is_some(), "{name}");
        }
        assert!(refusal(&Manifest { protocol_versions: vec![2], ..manifest.clone() }).is_some());
        let said = |protocol_version, name: &str, version: &str| {
            let (name, version, vendor) = (name.to_owned(), version.to_owned(), String::new());
            hello(&HelloAnswer { protocol_version, name, version, vendor }, &manifest)
        };
        assert_eq!(said(1, "acme", "1.0"), Ok(()));
        for lie in
            [said(2, "acme", "1.0"), said(1, "generic_hardware_manager", "1.0"), said(1, "acme", "1.1")]
        {
            assert!(lie.is_err());
        }
    }
}
