//! The options of a noun over a collection, made of the description of its fields.

use super::{Collection, Field, Kind, Resource, When};
use crate::values::{mac, pair};
use clap::builder::ValueParser;
use clap::error::{Error, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command as Line, FromArgMatches, Subcommand, value_parser};
use std::marker::PhantomData;

/// Names of the verbs.
const VERBS: [&str; 6] = ["list", "show", "create", "set", "unset", "delete"];
/// Id of the argument that names one.
const IDENT: &str = "ident";
/// Id of the option that chooses fields of a list.
pub(super) const FIELDS: &str = "fields";

/// A verb of this noun, as it was typed.
#[derive(Debug)]
pub struct Command<R> {
    pub(super) verb: Verb,
    resource: PhantomData<R>,
}

/// A verb with its arguments.
#[derive(Debug)]
pub(super) enum Verb {
    List(ArgMatches),
    Show(String),
    Create(ArgMatches),
    Set(String, ArgMatches),
    Unset(String, ArgMatches),
    Delete(String),
}

impl<R: Resource> FromArgMatches for Command<R> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let missing = || Error::raw(ErrorKind::MissingSubcommand, "a verb is missing");
        let (name, given) = matches.subcommand().ok_or_else(missing)?;
        let ident = || given.get_one::<String>(IDENT).cloned().unwrap_or_default();
        let verb = match name {
            "list" => Verb::List(given.clone()),
            "show" => Verb::Show(ident()),
            "create" => Verb::Create(given.clone()),
            "set" => Verb::Set(ident(), given.clone()),
            "unset" => Verb::Unset(ident(), given.clone()),
            "delete" => Verb::Delete(ident()),
            _ => return Err(Error::raw(ErrorKind::InvalidSubcommand, "this verb is unknown")),
        };
        Ok(Self { verb, resource: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<R: Resource> Subcommand for Command<R> {
    fn augment_subcommands(line: Line) -> Line {
        line.subcommands(lines(R::COLLECTION))
    }

    fn augment_subcommands_for_update(line: Line) -> Line {
        Self::augment_subcommands(line)
    }

    fn has_subcommand(name: &str) -> bool {
        VERBS.contains(&name)
    }
}

fn lines(collection: &'static Collection) -> [Line; 6] {
    let Collection { one, many, ident: (ident, may_be), .. } = collection;
    let article = if one.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    let ident = || Arg::new(IDENT).value_name(*ident).help(*may_be).required(true);
    let (mut create, mut set, mut unset) = (Vec::new(), Vec::new(), Vec::new());
    for field in collection.fields() {
        create.push(match field.when {
            When::First => argument(field).required(true),
            When::Required => option(field).required(true),
            When::Always | When::Create => option(field),
        });
        set.extend((field.when != When::Create).then(|| option(field)));
        unset.extend((field.when == When::Always).then(|| removal(field)));
    }
    let filters = collection
        .filters
        .iter()
        .map(|(option, _, help)| Arg::new(*option).long(*option).value_name("VALUE").help(*help));
    let fields = Arg::new(FIELDS)
        .long(FIELDS)
        .value_delimiter(',')
        .action(ArgAction::Append)
        .value_name("FIELDS")
        .help("These fields instead of the usual ones, separated by commas");
    [
        Line::new("list").about(format!("The {many}")).args(filters).arg(fields),
        Line::new("show").about(format!("One {one}")).arg(ident()),
        Line::new("create").about(collection.creates).args(create),
        Line::new("set").about(format!("Change fields of {article} {one}")).arg(ident()).args(set),
        Line::new("unset").about(format!("Remove fields of {article} {one}")).arg(ident()).args(unset),
        Line::new("delete").about(format!("Remove {article} {one}")).arg(ident()),
    ]
}

/// The field as an option.
fn option(field: &'static Field) -> Arg {
    argument(field).long(field.option)
}

/// The field as an argument without a name.
fn argument(field: &'static Field) -> Arg {
    let (name, parser): (_, ValueParser) = match field.kind {
        Kind::Text | Kind::Texts => ("TEXT", value_parser!(String)),
        Kind::Boolean => ("BOOL", value_parser!(bool)),
        Kind::Integer => ("N", value_parser!(i64).into()),
        Kind::Address => ("MAC", mac.into()),
        Kind::Object | Kind::TextObject | Kind::SecretObject => ("KEY=VALUE", pair.into()),
        Kind::Steps | Kind::List => ("FILE|-|JSON", value_parser!(String)),
        Kind::Reference(_) => ("NAME|UUID", value_parser!(String)),
    };
    let action = if field.kind.is_repeated() { ArgAction::Append } else { ArgAction::Set };
    Arg::new(field.option).value_name(name).value_parser(parser).action(action).help(field.help)
}

/// What removes the field: a flag, or the keys of an object.
fn removal(field: &'static Field) -> Arg {
    let arg = Arg::new(field.option).long(field.option);
    if field.kind.is_object() {
        return arg.value_name("KEY").action(ArgAction::Append).help("A key of it; may be repeated");
    }
    arg.action(ArgAction::SetTrue).help(field.help)
}

impl Kind {
    /// An object, of which keys are set and removed one by one.
    pub(super) fn is_object(self) -> bool {
        matches!(self, Self::Object | Self::TextObject | Self::SecretObject)
    }

    fn is_repeated(self) -> bool {
        self.is_object() || self == Self::Texts
    }
}
