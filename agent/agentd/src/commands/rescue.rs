//! `rescue.finalize_rescue`: let the owner of a node log in to the ramdisk.

use super::command::{Command, IpaCompatibility, Mode};
use crate::crypt::HashedPassword;
use crate::login::{Credentials, Login};
use crate::registry::Ending;
use agent_protocol::rescue::{RescueHost, authorized_keys};
use serde_json::{Map, Value, json};

/// Member of parameters and result for what ironic-python-agent does not have.
const EXTENSION: &str = "anneal";

pub(super) const COMMANDS: &[Command] = &[Command::new(
    "rescue.finalize_rescue",
    Mode::Sync,
    IpaCompatibility::Differs(
        "only a hash is taken (`hashed` true), and only where the ramdisk was booted with the archive `rescue` or a login \
         program was set up; `anneal.authorized_keys` are keys that may log in, too; the result says the host key",
    ),
    |call| {
        let admitted = credentials(call.params)
            .and_then(|credentials| call.state.login().admit(&credentials).map_err(|error| error.to_string()));
        match admitted {
            Ok(login) => Ending::done(result(login)),
            Err(problem) => Ending::failed("RescueError", "Rescue failed", problem),
        }
    },
)
.with(&[], &["rescue_password", "hashed", EXTENSION])];

/// The password and the keys of a command.
fn credentials(params: &Map<String, Value>) -> Result<Credentials, String> {
    let password = password(params.get("rescue_password"), params.get("hashed"))?;
    let keys = params.get(EXTENSION).and_then(|added| added.get("authorized_keys"));
    let keys = keys.map_or(Ok(Vec::new()), authorized_keys);
    Ok(Credentials { password, keys: keys.map_err(|problem| format!("authorized_keys{problem}"))? })
}

/// Nothing, as from ironic-python-agent, where the host key is not known.
fn result(login: Login) -> Option<Value> {
    login.host_key.map(|host_key| json!({ EXTENSION: RescueHost { host_key } }))
}

/// Only a hash is taken: ironic-python-agent would hash a plain password itself, and it would have travelled and
/// been stored in plain text to get here.
fn password(password: Option<&Value>, hashed: Option<&Value>) -> Result<HashedPassword, String> {
    if hashed != Some(&Value::Bool(true)) {
        return Err("a plain rescue password is refused: send its crypt(5) hash, with hashed=true".into());
    }
    let text = password.and_then(Value::as_str).unwrap_or_default();
    HashedPassword::new(text).map_err(|problem| format!("rescue_password is refused: {problem}"))
}
