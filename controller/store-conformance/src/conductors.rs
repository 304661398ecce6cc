//! Reports of controllers.

use super::samples::at;
use model::{AgentApi, ConductorReport};
use std::sync::Arc;
use store::Store;

fn report(hostname: &str, reported: i64) -> ConductorReport {
    ConductorReport {
        hostname: hostname.to_owned(),
        group: Some("rack \"1\"".to_owned()),
        drivers: vec!["redfish".to_owned(), "ipmi".to_owned()],
        version: "1.2.3".to_owned(),
        agent_api: Some(AgentApi {
            url: format!("https://{hostname}"),
            url_ipv6: Some(format!("https://{hostname}6")),
            pin_sha256: Some("0a".repeat(32)),
            gives_addresses: true,
        }),
        bmc_request_timeout_s: Some(20),
        started_at: at(0),
        reported_at: at(reported),
        alive_until: at(reported + 10),
    }
}

pub async fn the_last_report_of_each_controller_is_kept<S: Store>(store: Arc<S>) {
    assert_eq!(store.conductors().await.unwrap(), []);
    for report in [report("c2", 1), report("c1", 2), report("c2", 3)] {
        store.report_conductor(report).await.unwrap();
    }
    let found = store.conductors().await.unwrap();
    let names: Vec<_> = found.iter().map(|one| one.hostname.as_str()).collect();
    assert_eq!(names, ["c1", "c2"]);
    assert_eq!(found[1].drivers, report("c2", 3).drivers);
    assert_eq!(found[1].agent_api, report("c2", 3).agent_api);
    assert_eq!((&found[1].group, &found[1].version), (&report("c2", 3).group, &report("c2", 3).version));
    assert!(found[1].alive_until > found[1].reported_at);
    store.remove_conductor("c2").await.unwrap();
    store.remove_conductor("c2").await.expect("it is removed already");
    assert_eq!(store.conductors().await.unwrap().len(), 1);
}
