//! What a user does and sees: verbs, waiting for states, the history.

use super::setup::World;
use model::request::{Policy, VerbRequest, apply_verb};
use model::{Node, ProvisionState, RequestedStep, StepKind, Verb};
use std::time::Duration;
use store::{Clock, StoreError, prelude::*};
use tokio::time::sleep;

impl World {
    pub async fn verb(&self, verb: Verb, steps: Option<Vec<RequestedStep>>) {
        let kind = if verb == Verb::Service { StepKind::Service } else { StepKind::Clean };
        let mut request = VerbRequest::of(verb);
        if let Some(steps) = steps {
            request = request.with_steps(kind, steps);
        }
        self.ask(request).await;
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
