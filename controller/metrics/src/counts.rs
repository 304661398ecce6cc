//! What is counted as it happens.

use crate::erase::Erases;
use crate::family::{Counters, Histograms, Labels};
use crate::labels::{ANSWERS, HELLOS, OUTCOMES};
use crate::text::Text;
use model::ProvisionState;

/// Seconds of calls over a network, and of requests.
const CALLS: &[f64] = &[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];
/// Seconds of calls to the store, most of which are answered from memory.
const STORE: &[f64] = &[0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0];
/// Seconds of steps: to three days.
const STEPS: &[f64] = &[1.0, 10.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 43200.0, 86400.0, 259_200.0];

/// What is counted as it happens.
#[derive(Debug)]
pub struct Counts {
    pub transitions: Counters<1>,
    pub steps: Counters<3>,
    pub step_times: Histograms<2>,
    pub erases: Erases,
    pub bmc_calls: Counters<2>,
    pub bmc_times: Histograms<2>,
    pub agent_calls: Counters<1>,
    pub agent_times: Histograms<1>,
    pub heartbeats: Counters<1>,
    pub requests: Counters<3>,
    pub request_failures: Counters<0>,
    pub request_times: Histograms<2>,
    pub store_calls: Histograms<1>,
    pub store_failures: Counters<0>,
    pub pass_waits: Histograms<0>,
    pub pass_times: Histograms<0>,
    pub panics: Counters<0>,
    pub leases: Counters<1>,
    pub boots: Counters<1>,
    pub boot_files: Counters<1>,
    pub hellos: Counters<1>,
}

/// Series of one label that begin at 0.
fn each<const N: usize>(words: [&'static str; N]) -> [Labels<1>; N] {
    words.map(|word| [word])
}

impl Counts {
    /// Nothing yet.
    #[expect(clippy::too_many_lines, reason = "a table of families")]
    pub fn new() -> Self {
        let states = ProvisionState::ALL.map(ProvisionState::as_str);
        let of_drivers = bmc::DRIVERS.iter().flat_map(|driver| OUTCOMES.map(|outcome| [*driver, outcome]));
        Self {
            transitions: Counters::new(
                "anneal_node_transitions_total",
                "How often nodes have entered a provision state by a write of this controller.",
                ["provision_state"],
            )
            .starting(each(states)),
            steps: Counters::new(
                "anneal_steps_total",
                "Steps that have ended, by kind, step and outcome. Steps of vendors are \"other\".",
                ["kind", "step", "outcome"],
            ),
            step_times: Histograms::new(
                "anneal_step_duration_seconds",
                "Time from the start of a step to its stored result.",
                ["kind", "step"],
                STEPS,
            ),
            erases: Erases::new(),
            bmc_calls: Counters::new(
                "anneal_bmc_calls_total",
                "Actions of the conductor on BMCs, by driver and outcome.",
                ["driver", "outcome"],
            )
            .starting(of_drivers),
            bmc_times: Histograms::new(
                "anneal_bmc_call_duration_seconds",
                "How long actions on BMCs took.",
                ["driver", "call"],
                CALLS,
            ),
            agent_calls: Counters::new(
                "anneal_agent_calls_total",
                "Calls of the conductor to agents, by outcome.",
                ["outcome"],
            )
            .starting(each(OUTCOMES)),
            agent_times: Histograms::new(
                "anneal_agent_call_duration_seconds",
                "How long calls to agents took.",
                ["call"],
                CALLS,
            ),
            heartbeats: Counters::new(
                "anneal_heartbeats_total",
                "Heartbeats of agents, by outcome.",
                ["outcome"],
            )
            .starting(each(["accepted", "refused"])),
            requests: Counters::new(
                "anneal_api_requests_total",
                "Answers of the API, by method, path as its reference has it, and status. Paths that it does not have are \"other\".",
                ["method", "path", "status"],
            ),
            request_failures: Counters::new(
                "anneal_api_failures_total",
                "Answers of the API with a status of 500 or above.",
                [],
            )
            .starting([[]]),
            request_times: Histograms::new(
                "anneal_api_request_duration_seconds",
                "Time from a request's head to its answer's head.",
                ["method", "path"],
                CALLS,
            ),
            store_calls: Histograms::new(
                "anneal_store_call_duration_seconds",
                "How long calls to the store took.",
                ["operation"],
                STORE,
            ),
            store_failures: Counters::new(
                "anneal_store_failures_total",
                "Calls that the store could not do: a full disk, a database that does not answer.",
                [],
            )
            .starting([[]]),
            pass_waits: Histograms::new(
                "anneal_pass_wait_seconds",
                "How long passes over nodes waited for their place among max_passes and max_passes_per_bmc.",
                [],
                CALLS,
            ),
            pass_times: Histograms::new(
                "anneal_pass_duration_seconds",
                "How long passes over nodes took.",
                [],
                CALLS,
            ),
            panics: Counters::new("anneal_pass_panics_total", "Passes that a defect ended.", [])
                .starting([[]]),
            leases: Counters::new(
                "anneal_leases_total",
                "Leases of nodes: taken, held by another controller, renewed, lost.",
                ["outcome"],
            )
            .starting(each(["taken", "held", "renewed", "lost"])),
            boots: Counters::new(
                "anneal_boot_requests_total",
                "Boot scripts asked for, by the answer.",
                ["answer"],
            )
            .starting(each(ANSWERS)),
            boot_files: Counters::new(
                "anneal_boot_files_total",
                "Boot files that were begun to be sent.",
                ["file"],
            ),
            hellos: Counters::new("anneal_boot_hellos_total", "Hellos of instances, by answer.", ["answer"])
                .starting(each(HELLOS)),
        }
    }

    /// Write all families.
    pub fn write(&self, text: &mut Text) {
        self.transitions.write(text);
        self.steps.write(text);
        self.step_times.write(text);
        self.erases.write(text);
        self.bmc_calls.write(text);
        self.bmc_times.write(text);
        self.agent_calls.write(text);
        self.agent_times.write(text);
        self.heartbeats.write(text);
        self.requests.write(text);
        self.request_failures.write(text);
        self.request_times.write(text);
        self.store_calls.write(text);
        self.store_failures.write(text);
        self.pass_waits.write(text);
        self.pass_times.write(text);
        self.panics.write(text);
        self.leases.write(text);
        self.boots.write(text);
        self.boot_files.write(text);
        self.hellos.write(text);
    }
}
