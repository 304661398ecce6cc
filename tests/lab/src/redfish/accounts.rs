//! Accounts of the BMC (DSP0268, `AccountService`, `ManagerAccount`, `Role`), changed under ETags as the specification demands of
//! them (DSP0266, "ETags").

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde_json::{Map, Value, json};

use super::access::Who;
use super::{Bmc, collection, error};

pub(super) const SERVICE: &str = "/redfish/v1/AccountService";
pub(super) const ACCOUNTS: &str = "/redfish/v1/AccountService/Accounts";
pub(super) const ROLES: &str = "/redfish/v1/AccountService/Roles";
/// Shortest and longest password.
const PASSWORD: std::ops::RangeInclusive<usize> = 8..=64;

/// Path of an account.
pub(super) fn path(id: u32) -> String {
    format!("{ACCOUNTS}/{id}")
}

/// The roles that every service has (DSP0266, "Roles").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Administrator,
    Operator,
    ReadOnly,
}

impl Role {
    const ALL: [Self; 3] = [Self::Administrator, Self::Operator, Self::ReadOnly];

    fn name(self) -> &'static str {
        match self {
            Self::Administrator => "Administrator",
            Self::Operator => "Operator",
            Self::ReadOnly => "ReadOnly",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    fn privileges(self) -> &'static [&'static str] {
        match self {
            Self::Administrator => {
                &["Login", "ConfigureManager", "ConfigureUsers", "ConfigureComponents", "ConfigureSelf"]
            }
            Self::Operator => &["Login", "ConfigureComponents", "ConfigureSelf"],
            Self::ReadOnly => &["Login", "ConfigureSelf"],
        }
    }
}

#[derive(Debug)]
struct Account {
    name: String,
    password: String,
    role: Role,
    /// Raised by each change; its ETag.
    version: u64,
}

/// The accounts by their ids.
#[derive(Debug)]
pub(super) struct Accounts {
    known: BTreeMap<u32, Account>,
    next: u32,
}

impl Accounts {
    pub(super) fn of_administrator(name: &str, password: &str) -> Self {
        let account = Account {
            name: name.to_owned(),
            password: password.to_owned(),
            role: Role::Administrator,
            version: 1,
        };
        Self { known: BTreeMap::from([(1, account)]), next: 2 }
    }

    pub(super) fn login(&self, name: &str, password: &str) -> Option<u32> {
        let mut known = self.known.iter();
        known.find(|(_, account)| account.name == name && account.password == password).map(|(id, _)| *id)
    }

    pub(super) fn role(&self, id: u32) -> Option<Role> {
        self.known.get(&id).map(|account| account.role)
    }

    pub(super) fn name(&self, id: u32) -> Option<&str> {
        self.known.get(&id).map(|account| account.name.as_str())
    }

    fn tag(&self, id: u32) -> Option<String> {
        self.known.get(&id).map(|account| format!("\"{id}-{}\"", account.version))
    }

    fn document(&self, id: u32) -> Option<Value> {
        let account = self.known.get(&id)?;
        Some(json!({
            "@odata.type": "#ManagerAccount.v1_9_0.ManagerAccount",
            "@odata.id": path(id),
            "@odata.etag": self.tag(id)?,
            "Id": id.to_string(),
            "Name": "Account",
            "UserName": account.name,
            "Password": null,
            "RoleId": account.role.name(),
            "Enabled": true,
            "AccountTypes": ["Redfish"],
            "Links": {"Role": {"@odata.id": format!("{ROLES}/{}", account.role.name())}},
        }))
    }

    /// `Err` is what is wrong, with its key in the base registry.
    fn create(&mut self, body: &Map<String, Value>) -> Result<u32, (&'static str, String)> {
        let text = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default();
        if let Some(missing) = ["UserName", "Password", "RoleId"].iter().find(|key| text(key).is_empty()) {
            return Err(("PropertyMissing", format!("{missing} is missing")));
        }
        if self.known.values().any(|account| account.name == text("UserName")) {
            return Err(("ResourceAlreadyExists", "there is an account of this UserName".to_owned()));
        }
        let role = role(text("RoleId"))?;
        let account = Account {
            name: text("UserName").to_owned(),
            password: password(text("Password"))?,
            role,
            version: 1,
        };
        let id = self.next;
        self.next += 1;
        self.known.insert(id, account);
        Ok(id)
    }

    /// A change as a whole, or none.
    fn change(&mut self, id: u32, body: &Map<String, Value>, who: Who) -> Result<(), (&'static str, String)> {
        let unknown: Vec<&str> =
            body.keys().map(String::as_str).filter(|key| !matches!(*key, "Password" | "RoleId")).collect();
        if unknown.iter().all(|key| key.starts_with('@')) && unknown.len() == body.len() {
            return Err(("NoOperation", "the request changes nothing".to_owned()));
        }
        if !unknown.is_empty() {
            return Err(("PropertyUnknown", format!("not among the properties: {}", unknown.join(", "))));
        }
        let Some(account) = self.known.get_mut(&id) else {
            return Err(("ResourceMissingAtURI", "no such account".to_owned()));
        };
        let text = |key: &str| body.get(key).map(|value| value.as_str().unwrap_or_default());
        let new_password = text("Password").map(password).transpose()?;
        let new_role = text("RoleId").map(role).transpose()?;
        if new_role.is_some() && who.role != Role::Administrator {
            return Err(("PropertyNotWritable", "RoleId is changed by administrators".to_owned()));
        }
        account.password = new_password.unwrap_or_else(|| account.password.clone());
        account.role = new_role.unwrap_or(account.role);
        account.version += 1;
        Ok(())
    }
}

fn role(name: &str) -> Result<Role, (&'static str, String)> {
    Role::named(name).ok_or_else(|| ("PropertyValueNotInList", "RoleId is none of the roles".to_owned()))
}

fn password(text: &str) -> Result<String, (&'static str, String)> {
    if PASSWORD.contains(&text.len()) {
        return Ok(text.to_owned());
    }
    Err(("PropertyValueFormatError", "Password is too short or too long".to_owned()))
}

/// `GET AccountService`.
pub(super) async fn service() -> Json<Value> {
    Json(json!({
        "@odata.type": "#AccountService.v1_12_0.AccountService",
        "@odata.id": SERVICE,
        "Id": "AccountService",
        "Name": "Accounts",
        "ServiceEnabled": true,
        "HTTPBasicAuth": "Enabled",
        "MinPasswordLength": PASSWORD.start(),
        "MaxPasswordLength": PASSWORD.end(),
        "Accounts": {"@odata.id": ACCOUNTS},
        "Roles": {"@odata.id": ROLES},
    }))
}

/// `GET Roles`.
pub(super) async fn roles() -> Json<Value> {
    let paths = Role::ALL.map(|role| format!("{ROLES}/{}", role.name()));
    collection(ROLES, "Role", &paths.each_ref().map(String::as_str))
}

/// `GET Roles/{name}`.
pub(super) async fn show_role(Path(name): Path<String>) -> Response {
    let Some(role) = Role::named(&name) else {
        return error(StatusCode::NOT_FOUND, "ResourceMissingAtURI", "no such role");
    };
    let document = json!({
        "@odata.type": "#Role.v1_3_0.Role",
        "@odata.id": format!("{ROLES}/{name}"),
        "Id": name,
        "RoleId": name,
        "Name": "Role",
        "IsPredefined": true,
        "AssignedPrivileges": role.privileges(),
    });
    Json(document).into_response()
}

/// `GET Accounts`.
pub(super) async fn list(State(bmc): State<Bmc>) -> Json<Value> {
    let paths: Vec<String> =
        bmc.access.accounts(|accounts| accounts.known.keys().copied().map(path).collect());
    collection(ACCOUNTS, "ManagerAccount", &paths.iter().map(String::as_str).collect::<Vec<_>>())
}

fn shown(accounts: &Accounts, id: u32) -> Response {
    match (accounts.document(id), accounts.tag(id)) {
        (Some(document), Some(tag)) => ([(header::ETAG, tag)], Json(document)).into_response(),
        _ => error(StatusCode::NOT_FOUND, "ResourceMissingAtURI", "no such account"),
    }
}

fn given<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// `GET Accounts/{id}`.
pub(super) async fn show(State(bmc): State<Bmc>, Path(id): Path<u32>, headers: HeaderMap) -> Response {
    bmc.access.accounts(|accounts| {
        let tag = accounts.tag(id);
        if tag.is_some() && given(&headers, &header::IF_NONE_MATCH) == tag.as_deref() {
            return (StatusCode::NOT_MODIFIED, [(header::ETAG, tag.unwrap_or_default())]).into_response();
        }
        shown(accounts, id)
    })
}

fn object(body: &Bytes) -> Option<Map<String, Value>> {
    serde_json::from_slice(body).ok()
}

fn malformed() -> Response {
    error(StatusCode::BAD_REQUEST, "MalformedJSON", "the body is no JSON object")
}

/// `POST Accounts`.
pub(super) async fn create(State(bmc): State<Bmc>, body: Bytes) -> Response {
    let Some(body) = object(&body) else { return malformed() };
    bmc.access.accounts(|accounts| match accounts.create(&body) {
        Ok(id) => {
            let document = accounts.document(id).unwrap_or_default();
            (StatusCode::CREATED, [(header::LOCATION, path(id))], Json(document)).into_response()
        }
        Err((key, message)) => error(StatusCode::BAD_REQUEST, key, &message),
    })
}

/// `PATCH Accounts/{id}`. The precondition and the change are one step.
pub(super) async fn patch(
    State(bmc): State<Bmc>,
    Extension(who): Extension<Who>,
    Path(id): Path<u32>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let Some(body) = object(&body) else { return malformed() };
    bmc.access.accounts(|accounts| {
        let Some(tag) = accounts.tag(id) else { return shown(accounts, id) };
        if given(&headers, &header::IF_MATCH).is_some_and(|given| given != tag && given != "*") {
            return error(StatusCode::PRECONDITION_FAILED, "PreconditionFailed", "If-Match does not match");
        }
        match accounts.change(id, &body, who) {
            Ok(()) => shown(accounts, id),
            Err((key, message)) => error(StatusCode::BAD_REQUEST, key, &message),
        }
    })
}

/// `DELETE Accounts/{id}`. The first one stays, so that the BMC can be administered.
pub(super) async fn remove(State(bmc): State<Bmc>, Path(id): Path<u32>) -> Response {
    if id == 1 {
        return error(StatusCode::FORBIDDEN, "ResourceCannotBeDeleted", "the first account stays");
    }
    bmc.access.accounts(|accounts| match accounts.known.remove(&id) {
        Some(_) => StatusCode::NO_CONTENT.into_response(),
        None => shown(accounts, id),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_changed_as_a_whole_or_not_at_all() {
        let mut accounts = Accounts::of_administrator("admin", "secret");
        let body = |body: Value| body.as_object().unwrap().clone();
        let id = accounts
            .create(&body(json!({"UserName": "eve", "Password": "Passw0rd-1", "RoleId": "ReadOnly"})))
            .unwrap();
        let tag = accounts.tag(id);
        let (eve, admin) =
            (Who { account: id, role: Role::ReadOnly }, Who { account: 1, role: Role::Administrator });
        for (change, who, key) in [
            (json!({"Password": "Passw0rd-2", "Bogus": 1}), admin, "PropertyUnknown"),
            (json!({"@odata.id": "/x"}), admin, "NoOperation"),
            (json!({"Password": "Passw0rd-2", "RoleId": "King"}), admin, "PropertyValueNotInList"),
            (json!({"RoleId": "Administrator"}), eve, "PropertyNotWritable"),
            (json!({"Password": "short"}), eve, "PropertyValueFormatError"),
        ] {
            assert_eq!(accounts.change(id, &body(change.clone()), who).unwrap_err().0, key, "{change}");
        }
        assert_eq!((accounts.tag(id), accounts.login("eve", "Passw0rd-1")), (tag.clone(), Some(id)));
        accounts.change(id, &body(json!({"Password": "Passw0rd-2"})), eve).unwrap();
        assert_eq!(
            (accounts.login("eve", "Passw0rd-1"), accounts.login("eve", "Passw0rd-2")),
            (None, Some(id))
        );
        assert_ne!(accounts.tag(id), tag);
        assert!(!accounts.document(id).unwrap().to_string().contains("Passw0rd"));
    }
}
