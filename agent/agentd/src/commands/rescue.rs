//! `rescue.finalize_rescue`: let the owner of a node log in to the ramdisk.

use super::command::{Command, IpaCompatibility, Mode};
use crate::crypt::HashedPassword;
use crate::registry::Ending;
use serde_json::Value;

pub(super) const COMMANDS: &[Command] = &[Command::new(
    "rescue.finalize_rescue",
    Mode::Sync,
    IpaCompatibility::Differs(
        "only a hash is taken (`hashed` true), and only where a login program was set up",
    ),
    |call| {
        let admitted = password(call.params.get("rescue_password"), call.params.get("hashed"))
            .and_then(|password| call.state.login().admit(&password).map_err(|error| error.to_string()));
        match admitted {
            Ok(()) => Ending::done(None),
            Err(problem) => Ending::failed("RescueError", "Rescue failed", problem),
        }
    },
)
.with(&[], &["rescue_password", "hashed"])];

/// Only a hash is taken: ironic-python-agent would hash a plain password itself, and it would have travelled and
/// been stored in plain text to get here.
fn password(password: Option<&Value>, hashed: Option<&Value>) -> Result<HashedPassword, String> {
    if hashed != Some(&Value::Bool(true)) {
        return Err("a plain rescue password is refused: send its crypt(5) hash, with hashed=true".into());
    }
    let text = password.and_then(Value::as_str).unwrap_or_default();
    HashedPassword::new(text).map_err(|problem| format!("rescue_password is refused: {problem}"))
}
