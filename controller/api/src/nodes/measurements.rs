//! `/v1/anneal/nodes/{ident}/measurements`: the TPM of a node, what its boots must measure, and what the last one measured instead. An
//! extension of Anneal's, so no microversion guards it.

use crate::call::{Call, empty, json};
use crate::error::{ApiError, Reply};
use crate::format::iso;
use crate::{body, write};
use axum::extract::Path;
use model::boot_proof::{Difference, EndorsementKey, Measurement, Measurements, TpmRecord};
use model::history::Severity;
use model::{Event, EventKind, Node};
use serde_json::{Value, json};

/// `GET …`.
pub async fn show(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    Ok(json(200, &view(&call.node(&ident).await?)))
}

/// `POST …/accept {"id": ID}`: from now on boots must measure what the last one measured, which has this id.
pub async fn accept(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    let given = call.arguments(&["id"])?;
    let id = body::required(&given, "id")?;
    let node = write::change(&call, &ident, |old| {
        let mut new = old.clone();
        if !recorded(&mut new)?.accept(id, call.now()) {
            return Err(ApiError::conflict(format!(
                "Node {} has no changed measurements with the id {id}; a boot may have measured something else since.",
                old.uuid
            )));
        }
        let text = format!("what its boots measure was accepted by a user: {id}");
        Ok((new, vec![Event::new(EventKind::Flag, Severity::Info, text, call.now())]))
    })
    .await?;
    Ok(json(200, &view(&node)))
}

/// `DELETE …`: forget the TPM, because the board was replaced. The next inspection records the one that it finds.
pub async fn forget(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    write::change(&call, &ident, |old| {
        let mut new = old.clone();
        let name = recorded(&mut new)?.endorsement_key.name.clone();
        new.tpm = None;
        let text = format!("its TPM was forgotten by a user: endorsement key {name}");
        Ok((new, vec![Event::new(EventKind::Flag, Severity::Info, text, call.now())]))
    })
    .await?;
    Ok(empty(204, None))
}

fn recorded(node: &mut Node) -> Result<&mut TpmRecord, ApiError> {
    let none = || ApiError::client(404, format!("No TPM of node {} is recorded.", node.uuid));
    let missing = none();
    node.tpm.as_deref_mut().ok_or(missing)
}

fn view(node: &Node) -> Value {
    let Some(record) = node.tpm.as_deref() else {
        return json!({"tpm": null, "recorded": null, "changed": null});
    };
    let EndorsementKey { public, name, certificate } = &record.endorsement_key;
    let changed = record.changed.as_ref().map(|changed| {
        let differences = Measurements::differences(&record.measurements, &changed.measurements);
        json!({
            "id": changed.measurements.id(),
            "at": iso(changed.at),
            "differences": differences.iter().map(difference).collect::<Vec<_>>(),
            "new_programs": changed.measurements.new_programs(&record.measurements),
        })
    });
    json!({
        "tpm": {
            "endorsement_key": name,
            "public": public,
            "certificate": certificate,
            "enrolled_at": iso(record.enrolled_at),
        },
        "recorded": {
            "id": record.measurements.id(),
            "at": iso(record.accepted_at),
            "registers": record.measurements.registers.iter().map(|(pcr, register)| json!({
                "pcr": pcr,
                "what": what(*pcr),
                "digest": register.digest,
                "events": events(&register.events),
            })).collect::<Vec<_>>(),
            "programs": record.measurements.programs,
        },
        "changed": changed,
    })
}

fn difference(difference: &Difference) -> Value {
    let Difference { pcr, recorded, now, gone, new } = difference;
    json!({
        "pcr": pcr,
        "what": what(*pcr),
        "recorded": recorded,
        "now": now,
        "gone": events(gone.iter().copied()),
        "new": events(new.iter().copied()),
    })
}

fn events<'a>(events: impl IntoIterator<Item = &'a Measurement>) -> Vec<Value> {
    events.into_iter().map(|event| json!({"name": event.name, "digest": event.digest})).collect()
}

/// What is measured into a register (TCG PC Client Platform Firmware Profile, 3.3.4).
fn what(pcr: u8) -> &'static str {
    match pcr {
        0 => "firmware",
        2 => "option ROMs",
        3 => "settings of option ROMs",
        7 => "Secure Boot",
        _ => "other",
    }
}
