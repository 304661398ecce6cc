//! What a node finds on the network when it is switched on: the kernel command line of the ramdisk, or nothing.

use crate::process::check;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::process::Command;

/// The boot service that a node uses.
#[derive(Debug, Clone)]
pub enum Network {
    /// The boot service of anneal-controller, asked as iPXE asks it.
    Anneal {
        /// Its URL.
        boot: String,
    },
    /// None: Ironic's boot interface is `fake`. A node gets the command line that Ironic's PXE would send.
    Ironic {
        /// URL of Ironic's API.
        api: String,
    },
}

/// What a node boots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BootScript {
    /// The ramdisk, with this kernel command line.
    Ramdisk(String),
    /// What is on its disk.
    Disk,
    /// It is to ask again.
    Wait,
}

impl Network {
    /// What a node in this provision state boots.
    ///
    /// # Errors
    /// When the boot service does not answer with a script.
    pub fn boot_script(&self, mac: &str, provision_state: &Value) -> Result<BootScript> {
        match self {
            Self::Anneal { boot } => {
                let url = format!("{boot}/boot/ipxe?mac={mac}");
                let output = check(Command::new("curl").args(["--silent", "--show-error", "--fail", &url]))?;
                BootScript::read(&String::from_utf8(output.stdout)?).context(url)
            }
            Self::Ironic { api } => {
                let inspects = provision_state.as_str().is_some_and(|state| state.starts_with("inspect"));
                let callback = format!(
                    " ipa-inspection-callback-url={api}/v1/continue_inspection ipa-inspection-collectors=default,logs"
                );
                let callback = if inspects { callback.as_str() } else { "" };
                Ok(BootScript::Ramdisk(format!("ipa-api-url={api}{callback}")))
            }
        }
    }
}

impl BootScript {
    /// What an iPXE script of anneal-controller boots.
    ///
    /// # Errors
    /// When it is none.
    pub fn read(script: &str) -> Result<Self> {
        ensure!(script.starts_with("#!ipxe\n"), "no iPXE script: {script}");
        if script.contains("has to wait for its boot script") {
            return Ok(Self::Wait);
        }
        Ok(kernel_line(script).transpose()?.map_or(Self::Disk, Self::Ramdisk))
    }
}

/// The arguments in `kernel --name vmlinuz URL ARGUMENTS || goto retry`.
fn kernel_line(script: &str) -> Option<Result<String>> {
    let line = script.lines().find_map(|line| line.strip_prefix("kernel --name vmlinuz "))?;
    let arguments = line.strip_suffix(" || goto retry").and_then(|line| line.split_once(' '));
    Some(arguments.map(|(_, arguments)| arguments.to_owned()).with_context(|| format!("kernel line: {line}")))
}

/// The value of a word `key=value` of a kernel command line.
pub fn parameter<'a>(command_line: &'a str, key: &str) -> Option<&'a str> {
    command_line.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_line_of_a_script() {
        let script = "#!ipxe\necho x\nkernel --name vmlinuz http://a/boot/vmlinuz?mac=m initrd=i \
                      ipa-api-url=http://a quiet || goto retry\nboot || goto retry\n";
        let line = kernel_line(script).unwrap().unwrap();
        assert_eq!(line, "initrd=i ipa-api-url=http://a quiet");
        assert_eq!(parameter(&line, "ipa-api-url"), Some("http://a"));
        assert_eq!((parameter(&line, "quiet"), parameter(&line, "ipa-api")), (None, None));
        assert!(kernel_line("#!ipxe\nexit 1\n").is_none());
        assert!(kernel_line("#!ipxe\nkernel --name vmlinuz http://a\n").unwrap().is_err());
    }
}
