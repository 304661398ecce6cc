//! What a user does and sees: verbs, waiting for states, the history.

use super::setup::World;
use model::request::{Policy, VerbRequest, apply_verb};
use model::{Node, ProvisionState, RequestedStep, StepKind, Verb};
use std::time::Duration;
use store::{Clock, StoreError, prelude::*};
use tokio::time::sleep;

impl World {
    pub async fn verb(&self, verb: Verb) {
        self.ask(VerbRequest::of(verb)).await;
    }

    /// Manual cleaning with these steps.
    pub async fn clean(&self, steps: Vec<RequestedStep>) {
        self.ask(VerbRequest::of(Verb::Clean).with_steps(StepKind::Clean, steps)).await;
    }

    pub async fn ask(&self, request: VerbRequest) {
        loop {
            let node = self.store.node(self.node).await.unwrap();
            let policy = Policy { automated_clean: true };
            let (node, events) = apply_verb(&node, request.clone(), policy, self.clock.now()).unwrap();
            match self.store.update_node(node, events, None).await {
                Ok(_) => return,
                Err(StoreError::Stale(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Wait until the node satisfies `wanted`; panics after a simulated day.
    pub async fn until(&self, what: &str, wanted: impl Fn(&Node) -> bool) -> Node {
        for _ in 0..864_000 {
            let node = self.store.node(self.node).await.unwrap();
            if wanted(&node) {
                return node;
            }
            sleep(Duration::from_millis(100)).await;
        }
        panic!("never {what}: {:#?}", self.store.node(self.node).await.unwrap());
    }

    pub async fn until_state(&self, state: ProvisionState) -> Node {
        self.until(state.as_str(), |node| node.provision_state == state).await
    }

    /// Wait until the run has ended, well or not.
    pub async fn ended(&self) -> Node {
        let failed = |node: &Node| node.provision_state.as_str().ends_with("failed");
        self.until("ended", |node| node.provision_state.is_stable() || failed(node)).await
    }

    /// What happened, without ids and times.
    pub async fn texts(&self) -> Vec<String> {
        self.store.history(self.node).await.unwrap().into_iter().map(|event| event.text).collect()
    }

    /// `a -> b` of every transition and the momentary states, in order.
    pub async fn path(&self) -> Vec<String> {
        let texts = self.texts().await.into_iter();
        let momentary = |text: &str| text.chars().all(|letter| letter.is_ascii_uppercase());
        texts
            .filter(|text| text.contains(" -> ") || momentary(text))
            .map(|text| text.split(": ").next().unwrap_or_default().to_owned())
            .collect()
    }
}
