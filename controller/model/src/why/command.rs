//! Commands of `anneal` that an answer can advise.

use crate::power::PowerTarget;
use crate::provision::Verb;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// A verb of the provision state machine, without steps.
    Verb(Verb),
    /// Power.
    Power(PowerTarget),
    /// The node leaves maintenance.
    UnsetMaintenance,
    /// The node may enter service again.
    UnsetRetired,
    /// The node may be deleted and rebuilt.
    UnsetProtected,
    /// Another agent in its ramdisk.
    SetAgentKind(&'static str),
    /// A disk with this serial number or WWN has left the node.
    RetireDisk(String),
    /// What its boots measure now is right.
    AcceptMeasurements,
}

impl Command {
    /// What kind of request it is, in a word.
    pub fn action(&self) -> &'static str {
        match self {
            Self::Verb(_) => "verb",
            Self::Power(_) => "power",
            Self::UnsetMaintenance => "unset_maintenance",
            Self::UnsetRetired => "unset_retired",
            Self::UnsetProtected => "unset_protected",
            Self::SetAgentKind(_) | Self::RetireDisk(_) | Self::AcceptMeasurements => "other",
        }
    }

    /// The `target` of the request for the verb, or the power.
    pub fn target(&self) -> Option<&'static str> {
        match self {
            Self::Verb(verb) => Some(verb.target()),
            Self::Power(target) => Some(target.as_str()),
            _ => None,
        }
    }

    /// The command line for the node of this name or UUID. What comes from the node's hardware is quoted for the shell.
    pub fn line(&self, node: &str) -> String {
        match self {
            Self::Verb(verb) => format!("anneal node {} {node}", word(*verb)),
            Self::Power(target) => {
                let word = match target {
                    PowerTarget::On => "on",
                    PowerTarget::Off => "off",
                    PowerTarget::Reboot => "reboot",
                    PowerTarget::SoftOff => "soft-off",
                    PowerTarget::SoftReboot => "soft-reboot",
                };
                format!("anneal node power {word} {node}")
            }
            Self::UnsetMaintenance => format!("anneal node maintenance unset {node}"),
            Self::UnsetRetired => format!("anneal node unset {node} --retired"),
            Self::UnsetProtected => format!("anneal node unset {node} --protected"),
            Self::SetAgentKind(kind) => {
                format!("anneal node set {node} --property {}={kind}", crate::boot::AGENT_KIND)
            }
            Self::AcceptMeasurements => format!("anneal node measurements accept {node}"),
            Self::RetireDisk(name) => {
                format!(
                    "anneal node disks retire {node} {} --reason 'it was taken out of the node'",
                    quoted(name)
                )
            }
        }
    }
}

/// The command line's word for a verb.
fn word(verb: Verb) -> &'static str {
    match verb {
        Verb::Delete => "undeploy",
        Verb::Override => "override",
        verb => verb.as_str(),
    }
}

/// `text` as one word of a shell: what a disk calls itself must not become a command.
fn quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._:+".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_disk_calls_itself_is_one_word_for_the_shell() {
        for (name, word) in [
            ("S1", "S1"),
            ("0x5000c500", "0x5000c500"),
            ("", "''"),
            ("S 1", "'S 1'"),
            ("$(reboot)", "'$(reboot)'"),
            ("a';reboot;'", r"'a'\'';reboot;'\'''"),
        ] {
            let line = Command::RetireDisk(name.to_owned()).line("n1");
            assert_eq!(
                line,
                format!("anneal node disks retire n1 {word} --reason 'it was taken out of the node'")
            );
        }
    }
}
