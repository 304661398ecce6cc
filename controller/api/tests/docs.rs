//! Every request in the texts for operators is one that the API answers.

use crate::common::Api;
use model::ProvisionState;

const TEXTS: [&str; 4] = [
    include_str!("../../../docs/certificate.md"),
    include_str!("../../../docs/cleaning.md"),
    include_str!("../../../docs/provisioning.md"),
    include_str!("../../../docs/bundles.md"),
];
const METHODS: [&str; 5] = ["GET", "PUT", "POST", "PATCH", "DELETE"];

#[tokio::test]
async fn documented_requests_are_served() {
    let api = Api::new();
    api.node("n", ProvisionState::Manageable).await;
    let mut served = 0;
    for span in TEXTS.into_iter().flat_map(|text| text.split('`').skip(1).step_by(2)) {
        let Some((method, path)) = span.split_once(' ').filter(|(method, _)| METHODS.contains(method)) else {
            continue;
        };
        let answer = api
            .at(
                115,
                method,
                &path.replace("{ident}", "n").replace("{digest}", "d").replace("{id}", "d"),
                None,
            )
            .await;
        // What is no route has a title; what is not there (an inventory, say) has a fault.
        assert!(answer.status != 405 && !answer.text.contains("\\\"title\\\""), "{span}: {}", answer.text);
        served += 1;
    }
    assert!(served >= 10, "only {served} requests were found");
    let refused = api.at(115, "GET", "/v1/nodes/n/nosuch", None).await;
    assert!(refused.text.contains("\\\"title\\\""), "{}", refused.text);
}
