//! What a node is AVAILABLE on.

use crate::situation::{NOW, catalogue_step, node, snapshot};
use crate::world::World;
use conductor::Settings;
use conductor::decision::{Action, Change, Outcome};
use conductor::stages::apply_outcome;
use model::plan::automated_plan;
use model::run::Cursor;
use model::{Basis, Contact, Node, PowerState, PowerTarget, ProvisionState, StepKind, StepResult};
use serde_json::json;
use store::prelude::*;

/// A step that has succeeded: its name, and the id and finding of its certificate.
type Ended<'a> = (&'a str, Option<(&'a str, &'a str)>);

/// A cleaning ends whose steps have succeeded with these certificates and findings.
fn ended(steps: &[Ended], shape: impl FnOnce(&mut Node)) -> Change {
    let mut node = node(ProvisionState::Cleaning, Cursor::TearDown, steps.len() - 1);
    let run = node.run.as_mut().unwrap();
    let priority = |index: usize| 90 - i64::try_from(index).unwrap();
    let known = steps.iter().enumerate().map(|(index, (name, _))| catalogue_step(name, priority(index)));
    run.plan = Some(automated_plan(&known.collect::<Vec<_>>()));
    let result = |(index, (_, proof)): (usize, &Ended)| {
        let ended = StepResult::success(index, format!("c{index}"), NOW, json!({}));
        let (certificate, finding) =
            (proof.map(|(id, _)| id.into()), proof.map(|(_, finding)| finding.into()));
        StepResult { certificate, finding, ..ended }
    };
    run.results = steps.iter().enumerate().map(result).collect();
    shape(&mut node);
    let snapshot = snapshot(node, Contact::default(), NOW);
    let action = Action::SetPower(PowerTarget::Off);
    apply_outcome(&snapshot, &action, Outcome::Power(PowerState::Off), &Settings::default())
}

#[test]
fn the_basis_follows_from_the_evidence_of_the_erase_steps() {
    let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
    let (metadata, data) = ("erase_devices_metadata", "erase_devices");
    let proven = |finding| Some(("c-id", finding));
    for (steps, wanted) in [
        (
            vec![(metadata, Some(("m-id", "metadata_erased"))), (data, proven("erased"))],
            Basis::Erased { certificates: ids(&["m-id", "c-id"]) },
        ),
        (
            vec![("erase_devices_express", proven("erased_with_exceptions"))],
            Basis::ErasedWithExceptions { certificates: ids(&["c-id"]) },
        ),
        (vec![(metadata, proven("metadata_erased"))], Basis::MetadataOnly { certificates: ids(&["c-id"]) }),
        (vec![(data, proven("nothing_erased"))], Basis::NothingErased { certificates: ids(&["c-id"]) }),
        // A vendor's step may report disks, too.
        (vec![("vendor_wipe", proven("erased"))], Basis::Erased { certificates: ids(&["c-id"]) }),
        // One erase without evidence, and the node is no more than an agent's word says.
        (vec![(metadata, proven("metadata_erased")), (data, None)], Basis::IronicPythonAgent),
        (vec![("verify_properties", None)], Basis::FakeHardware),
    ] {
        let change = ended(&steps, |_| {});
        assert_eq!(change.node.basis, Some(wanted.clone()), "{steps:?}");
        let event = change.events.iter().find(|event| event.text.contains("-> available")).unwrap();
        assert!(event.text.contains(&format!("; basis: {wanted}")), "{}", event.text);
    }
    let change = ended(&[("verify_properties", None)], |node| node.driver = "redfish".to_owned());
    assert_eq!(change.node.basis, Some(Basis::NoEraseStep));
    // Without a basis that can be read it does not become available.
    let change = ended(&[(data, proven("failed"))], |_| {});
    assert_eq!((change.node.provision_state, change.node.basis), (ProvisionState::CleanFail, None));
}

#[tokio::test(start_paused = true)]
async fn the_basis_names_the_stored_certificates() {
    let world = World::new().await;
    // Everything that follows the last step is decided in one pass.
    let settings = Settings { stay_on_after_cleaning: true, ..Settings::default() };
    let _conductor = world.provide(settings).await;
    let node = world.until_state(ProvisionState::Available).await;
    let stored = world.store.certificates(node.uuid).await.unwrap();
    let ids: Vec<String> = stored.into_iter().map(|certificate| certificate.id).collect();
    assert_eq!(ids.len(), 2);
    assert_eq!(node.basis.as_ref().unwrap().as_str(), "erased");
    assert_eq!(node.basis.unwrap().certificates(), ids);
}

#[tokio::test(start_paused = true)]
async fn without_an_erase_step_nothing_counts_as_erased() {
    let world = World::new().await;
    let reset = json!({"interface": "bios", "step": "reset", "priority": 5});
    world.only_out_of_band(StepKind::Clean, &[reset]);
    let _conductor = world.provide(Settings::default()).await;
    let node = world.until_state(ProvisionState::Available).await;
    assert_eq!(node.basis, Some(Basis::FakeHardware));
}
