//! Issue 4, "Done when" 2.

use sim::fleet::{Size, run};
use std::io::Write as _;

/// "200 nodes with real agents' protocol in the simulator go manage → provide → deploy → delete → clean while the
/// controller is killed 50 times and agents 50 times: none lost, none stuck, none available unclean."
#[test]
fn two_hundred_nodes_arrive_while_controller_and_agents_are_killed_fifty_times_each() {
    let arrival = run(4, Size { nodes: 200, controller_kills: 50, agent_kills: 50 }, false);
    std::io::stderr().write_all(format!("{arrival}\n").as_bytes()).unwrap();
    assert_eq!(arrival.outcome.violation, None);
    assert_eq!((arrival.arrived, arrival.outcome.kills, arrival.agent_kills), (200, 50, 50));
}
