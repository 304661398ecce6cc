//! Nouns that are alike: `list`, `show`, `create`, `set`, `unset` and `delete` over one collection of the API. A noun is a
//! [`Collection`]: where it is in the API, what names one of it, its fields, and the columns of its list. From that come the
//! options with their help ([`arguments`]) and the requests ([`requests`]).

mod arguments;
mod requests;

pub use arguments::Command;
pub use requests::{chosen, run};

use crate::output::cell;
use serde_json::Value;

/// A noun over a collection.
pub trait Resource: std::fmt::Debug {
    /// What is known of it.
    const COLLECTION: &'static Collection;
}

/// A collection of the API.
#[derive(Debug)]
pub struct Collection {
    /// Its path, after `/v1/`.
    pub path: &'static [&'static str],
    /// The key of the list in an answer.
    pub list: &'static str,
    /// What one is called: `port group`.
    pub one: &'static str,
    /// What several are called: `port groups`.
    pub many: &'static str,
    /// The argument that names one, and what it may be.
    pub ident: (&'static str, &'static str),
    /// Whether a MAC address names one, too.
    pub has_address: bool,
    /// What `create` does, as its help says it.
    pub creates: &'static str,
    /// What a list is asked for where no fields are named: the argument of the query and its value.
    pub query: Option<(&'static str, &'static str)>,
    /// Columns of a list.
    pub columns: &'static [Column],
    /// Filters of a list: the option, the argument of the query, and the help.
    pub filters: &'static [(&'static str, &'static str, &'static str)],
    /// Fields that clients write, besides `uuid`.
    pub fields: &'static [Field],
}

/// A column of a list.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    heading: &'static str,
    key: &'static str,
    shown: fn(&Value) -> String,
}

/// The column of a field.
pub const fn column(heading: &'static str, key: &'static str) -> Column {
    Column { heading, key, shown: cell }
}

impl Column {
    /// The same column, whose values are shown in another way.
    pub const fn shown(self, shown: fn(&Value) -> String) -> Self {
        Self { shown, ..self }
    }
}

/// A field that clients write.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its name in the API.
    name: &'static str,
    /// The option that sets it, without `--`.
    option: &'static str,
    kind: Kind,
    when: When,
    help: &'static str,
}

/// What a field holds, and how it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer,
    /// A MAC address.
    Address,
    /// An object, by `KEY=VALUE`, where a value that is JSON counts as such.
    Object,
    /// The same, where each value is text.
    TextObject,
    /// The same as [`Kind::Object`], where a value may be a secret that does not belong on a command line.
    SecretObject,
    /// A list of texts; the option is repeated.
    Texts,
    /// A JSON list of steps.
    Steps,
    /// Any JSON list.
    List,
    /// The UUID of something in the collection with this path, given by its name or UUID.
    Reference(&'static str),
}

/// When a field can be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// It must be, as the first argument of `create`; `set` changes it.
    First,
    /// It must be, with `create`; `set` changes it.
    Required,
    /// With `create` and `set`; `unset` removes it.
    Always,
    /// With `create` only.
    Create,
}

/// A field that `create` and `set` write, and `unset` removes.
pub const fn field(name: &'static str, option: &'static str, kind: Kind, help: &'static str) -> Field {
    Field { name, option, kind, when: When::Always, help }
}

impl Field {
    /// The same field as the first argument of `create`.
    pub const fn first(self) -> Self {
        Self { when: When::First, ..self }
    }

    /// The same field, without which there is none.
    pub const fn required(self) -> Self {
        Self { when: When::Required, ..self }
    }

    /// The same field, which stays as it was created.
    pub const fn at_creation(self) -> Self {
        Self { when: When::Create, ..self }
    }
}

/// The UUID of a new one.
static UUID: Field = field("uuid", "uuid", Kind::Text, "UUID; made up when not given").at_creation();

/// Free data.
pub const EXTRA: Field = field("extra", "extra", Kind::Object, "Free data; may be repeated");

impl Collection {
    /// All fields that clients write.
    fn fields(&self) -> impl Iterator<Item = &'static Field> + use<> {
        self.fields.iter().chain(std::iter::once(&UUID))
    }
}
