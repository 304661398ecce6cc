//! The controllers that are alive, as this one last read them: the conductor keeps them, the API shows them.

use model::conductors::{self, AgentApi, ConductorReport};
use model::node::Node;
use std::sync::{Arc, Mutex, PoisonError};
use uuid::Uuid;

/// The controllers that are alive. Clones share them.
#[derive(Debug, Clone)]
pub struct Members {
    own: Arc<str>,
    drivers: Arc<[String]>,
    agent_api: Option<Arc<AgentApi>>,
    alive: Arc<Mutex<Arc<[ConductorReport]>>>,
}

impl Members {
    /// Nothing was read yet: until then this controller, which has this name, counts as the only one.
    pub fn alone(own: &str) -> Self {
        let alive = Arc::new(Mutex::new(Arc::from([])));
        Self { own: own.into(), drivers: Arc::new([]), agent_api: None, alive }
    }

    /// With the names of this controller's drivers.
    #[must_use]
    pub fn with_drivers(self, drivers: Vec<String>) -> Self {
        Self { drivers: drivers.into(), ..self }
    }

    /// With where agents reach this controller, if it boots nodes.
    #[must_use]
    pub fn reached_at(self, agent_api: Option<AgentApi>) -> Self {
        Self { agent_api: agent_api.map(Arc::new), ..self }
    }

    /// Name of this controller.
    pub fn own(&self) -> &str {
        &self.own
    }

    /// Names of its drivers.
    pub fn drivers(&self) -> &[String] {
        &self.drivers
    }

    /// Where agents reach this controller, if it boots nodes.
    pub fn agent_api(&self) -> Option<&AgentApi> {
        self.agent_api.as_deref()
    }

    /// Where agents reach others when this controller is gone: at most `most`, of its conductor group, by name.
    pub fn other_agent_apis(&self, most: usize) -> Vec<AgentApi> {
        let alive = self.alive();
        let group = alive.iter().find(|one| one.hostname == self.own()).and_then(|one| one.group.as_deref());
        let others = alive.iter().filter(|one| one.hostname != self.own() && one.group.as_deref() == group);
        others.filter_map(|one| one.agent_api.clone()).take(most).collect()
    }

    /// Whether this controller gives nodes their addresses: of those in its conductor group that could, one does.
    pub fn gives_addresses(&self) -> bool {
        let alive = self.alive();
        let group = alive.iter().find(|one| one.hostname == self.own()).and_then(|one| one.group.as_deref());
        let gives = |one: &ConductorReport| one.agent_api.as_ref().is_some_and(|api| api.gives_addresses);
        let mut able = alive.iter().filter(|one| one.group.as_deref() == group && gives(one));
        able.next().is_none_or(|first| first.hostname == self.own())
    }

    /// Those that are alive, by name; none before the first were read.
    pub fn alive(&self) -> Arc<[ConductorReport]> {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Take those that were read. True if other nodes may be driven by this controller now.
    pub fn replace(&self, alive: Vec<ConductorReport>) -> bool {
        let mut known = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        let who = |all: &[ConductorReport]| -> Vec<_> {
            all.iter().map(|one| (one.hostname.clone(), one.group.clone())).collect()
        };
        let changed = who(&known) != who(&alive);
        *known = alive.into();
        changed
    }

    /// The controller that drives a node; `None` if none of its conductor group is alive.
    pub fn driver_of(&self, node: &Node) -> Option<String> {
        let alive = self.alive();
        if alive.is_empty() {
            return Some(self.own.to_string());
        }
        conductors::driver_of(node.uuid, node.conductor_group(), &alive).map(str::to_owned)
    }

    /// Whether this controller drives a node.
    pub fn drives(&self, node: &Node) -> bool {
        self.driver_of(node).as_deref() == Some(self.own())
    }

    /// Whether it may be that this controller drives a node of which only the UUID is known.
    pub fn may_drive(&self, node: Uuid) -> bool {
        let alive = self.alive();
        let has_groups = alive.iter().any(|one| one.group.is_some());
        alive.is_empty() || has_groups || conductors::driver_of(node, "", &alive) == Some(self.own())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Timestamp;
    use serde_json::json;

    fn report(hostname: &str, group: Option<&str>) -> ConductorReport {
        ConductorReport {
            hostname: hostname.to_owned(),
            group: group.map(str::to_owned),
            drivers: Vec::new(),
            version: String::new(),
            agent_api: None,
            bmc_request_timeout_s: None,
            started_at: Timestamp(0),
            reported_at: Timestamp(0),
            alive_until: Timestamp(1),
        }
    }

    fn node(group: &str) -> Node {
        let mut node = Node::enrolled(Uuid::from_u128(7), "redfish", Timestamp(0));
        node.other.insert("conductor_group".to_owned(), json!(group));
        node
    }

    #[test]
    fn before_anything_was_read_it_is_alone() {
        let members = Members::alone("c1");
        assert!(members.drives(&node("any")) && members.may_drive(Uuid::nil()));
    }

    #[test]
    fn each_node_is_driven_by_one() {
        let (one, two) = (Members::alone("c1"), Members::alone("c2"));
        for members in [&one, &two] {
            assert!(members.replace(vec![report("c1", None), report("c2", None)]));
            assert!(!members.replace(vec![report("c1", None), report("c2", None)]), "the same as before");
        }
        for number in 0..100 {
            let node = Node { uuid: Uuid::from_u128(number), ..node("") };
            assert_ne!(one.drives(&node), two.drives(&node));
            assert_eq!(one.drives(&node), one.may_drive(node.uuid));
        }
    }

    #[test]
    fn agents_are_sent_to_others_of_the_group_that_boot_nodes() {
        let api = |name: &str| AgentApi {
            url: format!("https://{name}"),
            url_ipv6: None,
            pin_sha256: None,
            gives_addresses: name != "c1",
        };
        let boots = |name: &str, group| ConductorReport { agent_api: Some(api(name)), ..report(name, group) };
        let members = Members::alone("c2").reached_at(Some(api("c2")));
        assert_eq!((members.agent_api(), members.other_agent_apis(9)), (Some(&api("c2")), Vec::new()));
        let rack = Some("rack1");
        let all =
            [boots("c1", None), boots("c2", None), report("c3", None), boots("c4", None), boots("c5", rack)];
        members.replace(all.to_vec());
        assert_eq!(members.other_agent_apis(9), [api("c1"), api("c4")]);
        assert_eq!(members.other_agent_apis(1), [api("c1")]);
        members.replace(vec![boots("c1", None), boots("c2", rack), boots("c5", rack)]);
        assert_eq!(members.other_agent_apis(9), [api("c5")]);

        let of = |own: &str, alive: &[ConductorReport]| {
            let members = Members::alone(own);
            members.replace(alive.to_vec());
            members.gives_addresses()
        };
        assert!(of("c2", &[]), "nothing was read yet");
        assert_eq!(["c1", "c2", "c4", "c5"].map(|own| of(own, &all)), [false, true, false, true]);
        assert!(of("c4", &[all[0].clone(), all[3].clone()]), "c2 is gone");
    }

    #[test]
    fn one_that_does_not_see_itself_drives_nothing() {
        let members = Members::alone("c1");
        members.replace(vec![report("c2", None)]);
        assert!(!members.drives(&node("")) && !members.may_drive(Uuid::nil()));
    }

    #[test]
    fn with_groups_a_node_is_read_before_it_is_left_to_others() {
        let members = Members::alone("c1");
        members.replace(vec![report("c1", Some("rack1")), report("c2", None)]);
        assert!((0..100).all(|number| members.may_drive(Uuid::from_u128(number))));
        assert!(members.drives(&node("rack1")) && !members.drives(&node("")));
    }
}
