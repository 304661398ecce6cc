//! `/v1/anneal/nodes/{ident}/disks`: the disks that the next erase of the node must report. An extension of Anneal's, so no
//! microversion guards it.

use crate::call::{Call, json};
use crate::error::{ApiError, Reply};
use crate::format::iso;
use crate::{body, write};
use axum::extract::Path;
use model::Node;
use model::disks::{KnownDisk, RetiredDisk};
use model::storage::{self, NotRetired};
use serde_json::{Value, json};

/// Longest reason, in characters.
const LONGEST_REASON: usize = 255;

/// `GET …`.
pub async fn list(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    Ok(json(200, &view(&call.node(&ident).await?)))
}

/// `POST …/retire {"disk": SERIAL or WWN, "reason": TEXT}`: accept that a disk has left the node. It is in the node's history
/// and named in the next certificate.
pub async fn retire(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    let given = call.arguments(&["disk", "reason"])?;
    let (disk, reason) = (body::required(&given, "disk")?, body::required(&given, "reason")?.trim());
    if reason.is_empty() {
        return Err(ApiError::invalid("The reason is empty"));
    }
    if reason.chars().count() > LONGEST_REASON {
        return Err(ApiError::invalid(format!("The reason is longer than {LONGEST_REASON} characters")));
    }
    let node = write::change_unlocked(&call, &ident, |old| {
        let mut new = old.clone();
        let event = storage::retire(&mut new, disk, reason, call.now()).map_err(|error| match error {
            NotRetired::Unknown(_) => ApiError::client(404, error.to_string()),
            NotRetired::Expected(_) => ApiError::conflict(error.to_string()),
        })?;
        Ok((new, vec![event]))
    })
    .await?;
    Ok(json(200, &view(&node)))
}

fn view(node: &Node) -> Value {
    let known = |disk: &KnownDisk| json!({"serial": disk.serial, "wwn": disk.wwn, "model": disk.model});
    let retired = |retired: &RetiredDisk| {
        let mut disk = known(&retired.disk);
        disk["reason"] = json!(retired.reason);
        disk["retired_at"] = json!(iso(retired.at));
        disk
    };
    json!({
        "known": node.disks.known.iter().map(known).collect::<Vec<_>>(),
        "retired": node.disks.retired.iter().map(retired).collect::<Vec<_>>(),
    })
}
