//! An agent that shows the nonce of another boot: it was booted by an old medium or script of its node, or by that of another
//! node. It gets nothing; the history of the node that it names says so.

use crate::call::Call;
use model::Node;

/// Put it into the history, if the caller shows a nonce at all. A caller that shows none is merely not an agent of ours.
pub async fn remark(call: &Call, node: &Node) {
    if call.nonce.is_none() {
        return;
    }
    let place = call.client().map_or_else(|| "an unknown address".to_owned(), |client| client.to_string());
    let text = format!(
        "an agent at {place} was refused: it shows the nonce of another boot, so that it was booted by an old or a foreign boot \
         medium or script"
    );
    let store = &call.unscoped_app.store;
    if let Err(error) = call.app.remarks.note(&**store, node.uuid, &text, call.app.clock.now()).await {
        tracing::warn!(node_uuid = %node.uuid, error = %error.chain(), "cannot store that an agent was refused");
    }
}
