//! The table of rights is Ironic's.

use super::callers::{IRONIC, User};
use api::auth::policy::{may, names};
use api::auth::{Grant, Identity, Owners, Scope};
use std::collections::BTreeSet;

fn identity(user: User) -> Identity {
    let scope = match user.relation {
        "system" => Scope::System,
        relation => Scope::Project(format!("p-{relation}")),
    };
    Identity { grant: Some(Grant { role: user.role, scope }), user: None }
}

#[test]
fn the_policy_table_agrees_with_ironics_code() {
    let policies = IRONIC["policies"].as_object().unwrap();
    assert!(policies.len() > 100, "{}", policies.len());
    let ours: BTreeSet<_> = names().collect();
    assert_eq!(ours.len(), names().count(), "a policy stands twice");
    let ironics: BTreeSet<_> = policies.keys().map(String::as_str).collect();
    let own: Vec<_> = ours.difference(&ironics).collect();
    assert!(own.iter().all(|name| name.starts_with("anneal:")), "{own:?}");
    assert!(ironics.is_subset(&ours), "missing: {:?}", ironics.difference(&ours));

    let owners = Owners { owner: Some("p-owner".into()), lessee: Some("p-lessee".into()) };
    for policy in names() {
        for user in User::all() {
            let who = user.name();
            assert_eq!(may(policy, &identity(user), Some(&owners)), user.may(policy), "{policy} {who}");
            // Without owners, the roles of owner and lessee do not apply.
            let relation = if user.is_of_a_project() { "stranger" } else { "system" };
            for nobodys in [None, Some(&Owners::default())] {
                assert_eq!(
                    may(policy, &identity(user), nobodys),
                    user.may_as(policy, relation),
                    "{policy} {who}"
                );
            }
        }
        assert!(!may(policy, &Identity::ANONYMOUS, Some(&owners)), "{policy}");
    }
    let user = |role| identity(User { relation: "system", role });
    assert!(may("anneal:new", &user(api::auth::Role::Admin), None));
    assert!(!may("anneal:new", &user(api::auth::Role::Manager), None));
}
