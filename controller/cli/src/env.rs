//! `anneal env`: what other clients need, as a shell reads it.

use crate::client::Client;
use crate::failure::Failure;
use std::io::Write;

/// Print the variables of OpenStack's clients for the controller of `client`.
pub async fn run(client: &Client) -> Result<(), Failure> {
    // A controller that asks for its operator token is given it here.
    client.get(&["drivers"], &[]).await?;
    let endpoint = client.endpoint().as_str().trim_end_matches('/');
    let mut variables = vec![("OS_ENDPOINT", endpoint)];
    match client.credentials() {
        Some(credentials) => variables.extend([
            ("OS_AUTH_TYPE", "http_basic"),
            ("OS_USERNAME", credentials.user()),
            ("OS_PASSWORD", credentials.password()),
        ]),
        None => variables.push(("OS_AUTH_TYPE", "none")),
    }
    let mut out = std::io::stdout().lock();
    for (name, value) in variables {
        writeln!(out, "export {name}={}", quoted(value))?;
    }
    Ok(())
}

/// A word that a shell takes as it is.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_shell_reads_the_value_and_runs_nothing() {
        let value = "it's $(id) `id` \"x\" \\ \n;";
        let script = format!("printf %s {}", quoted(value));
        let printed = std::process::Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(printed.stdout).unwrap(), value);
    }
}
