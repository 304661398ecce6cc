//! An agent that shows the nonce of another boot: it was booted by an old medium or script of its node, or by that of another
//! node. It gets nothing; the history of the node that it names says so, whatever state that is in.

use super::required_proof::{place, remark as note};
use crate::call::Call;
use model::Node;
use store::contact::is_of_this_boot;

/// The kind of these remarks: another kind in the same minute hides none of them.
const KIND: &str = "foreign boot";

/// Put it into the history, if the caller shows a nonce and it is not that of the node's boot. A caller that shows none is merely
/// not an agent of ours, and one that shows the right one may ask when no agent is awaited.
pub async fn remark(call: &Call, node: &Node) {
    let Some(nonce) = call.nonce.as_ref() else { return };
    match call.app.store.contact(node.uuid).await {
        Ok(contact) if is_of_this_boot(&contact, Some(nonce), false) => return,
        Ok(_) => {}
        Err(error) => {
            tracing::warn!(node_uuid = %node.uuid, error = %error.chain(), "cannot read of which boot an agent is");
            return;
        }
    }
    let text = format!(
        "an agent at {} was refused: it shows the nonce of another boot, so that it was booted by an old or a foreign boot \
         medium or script",
        place(call)
    );
    note(call, node, KIND, &text).await;
}
