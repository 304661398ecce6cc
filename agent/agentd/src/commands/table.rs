//! The one table of commands; `anneal.cancel` alone is not in it, since it is accepted while another command runs.

use super::command::{Command, IpaCompatibility, UnknownCommand};
use super::{anneal, flow, image, log, poll, rescue, standby, step, system};

const GROUPS: [&[Command]; 9] = [
    step::COMMANDS,
    log::COMMANDS,
    standby::COMMANDS,
    image::COMMANDS,
    rescue::COMMANDS,
    poll::COMMANDS,
    flow::COMMANDS,
    system::COMMANDS,
    anneal::COMMANDS,
];

/// All commands.
pub fn all() -> impl Iterator<Item = &'static Command> {
    GROUPS.iter().flat_map(|group| group.iter())
}

/// Find a command by `<extension>.<command>`.
pub fn find(name: &str) -> Result<&'static Command, UnknownCommand> {
    let (extension, command) = split(name)?;
    if let Some(found) = all().find(|candidate| candidate.name == name) {
        return match found.compatibility {
            IpaCompatibility::Invalid(why) => Err(UnknownCommand::Invalid(why)),
            _ => Ok(found),
        };
    }
    if all().any(|candidate| candidate.name.split_once('.').is_some_and(|(group, _)| group == extension)) {
        return Err(UnknownCommand::Command(command.to_owned()));
    }
    Err(UnknownCommand::Extension(extension.to_owned()))
}

/// `<extension>` and `<command>` of a name.
pub fn split(name: &str) -> Result<(&str, &str), UnknownCommand> {
    name.split_once('.')
        .filter(|(extension, command)| !extension.is_empty() && !command.is_empty())
        .ok_or(UnknownCommand::Form)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn names_are_looked_up_with_the_texts_of_ipa() {
        assert_eq!(find("clean.get_clean_steps").map(Command::short_name), Ok("get_clean_steps"));
        let text = |name| find(name).map(Command::short_name).map_err(|error| error.to_string());
        assert_eq!(
            text("nosuch"),
            Err("Invalid command: Command name must be of the form <extension>.<name>".into())
        );
        assert_eq!(text("nosuch.cmd"), Err("Not found: Extension with id nosuch not found.".into()));
        assert_eq!(text("clean.nosuch"), Err("Invalid command: Unknown command: nosuch".into()));
    }

    #[test]
    fn parameters_are_checked_by_name() {
        let command = find("clean.execute_clean_step").expect("known");
        let check = |value: Value| command.check_params(value.as_object().expect("object"));
        assert_eq!(check(json!({"step": {}, "node": {}, "ports": []})), Ok(()));
        assert!(check(json!({"step": {}, "node": {}})).is_err_and(|text| text.contains("'ports'")));
        assert!(
            check(json!({"step": {}, "node": {}, "ports": [], "x": 1}))
                .is_err_and(|text| text.contains("'x'"))
        );
    }
}
