//! What every store does, as checks for the tests of an implementation.
//!
//! ```text
//! #[tokio::test(flavor = "multi_thread")]
//! async fn conforms() {
//!     store_conformance::check(async || MyStore::new()).await;
//! }
//! ```
//!
//! Calls "at once" run as tasks of their own, so a runtime of several threads shows more.

mod bundles;
mod certificates;
mod conductors;
mod contact;
mod discovery;
mod events;
mod inventory;
mod lease;
mod node_lists;
mod nodes;
mod proof;
mod random;
mod resource_lists;
mod resources;
mod samples;
mod webhooks;

pub use samples::certificate;
use std::sync::Arc;
use store::Store;

/// Run checks, each on a new store.
macro_rules! run {
    ($make:ident, $($check:path),* $(,)?) => {$(
        eprintln!("conformance: {}", stringify!($check));
        Box::pin($check(Arc::new($make().await))).await;
    )*};
}

/// Run every check, each on a new store of `make`. Panics at the first that fails.
pub async fn check<S: Store + 'static>(make: impl AsyncFn() -> S) {
    check_nodes(&make).await;
    check_what_belongs_to_them(&make).await;
}

async fn check_nodes<S: Store + 'static>(make: impl AsyncFn() -> S) {
    run!(
        make,
        nodes::a_node_comes_back_whole,
        nodes::a_look_returns_a_changed_node,
        nodes::lookup_by_ident,
        nodes::order_of_lists,
        nodes::a_node_becomes_available_only_with_a_basis,
        nodes::unique_values,
        nodes::a_stale_write_changes_nothing,
        nodes::unknown_nodes,
        nodes::of_two_updates_at_once_one_wins,
        nodes::many_writers_lose_no_update,
        nodes::history_comes_with_the_write,
        nodes::history_is_pruned,
        nodes::events_have_the_state_before_the_write,
        nodes::delete_removes_what_belongs_to_the_node,
        nodes::nodes_that_are_due,
        nodes::the_bell_rings_for_nodes,
        node_lists::a_page_is_that_of_all_nodes,
        node_lists::pages_of_many_nodes,
        resource_lists::a_page_is_that_of_all_resources,
        resource_lists::pages_of_many_resources,
    );
}

async fn check_what_belongs_to_them<S: Store + 'static>(make: impl AsyncFn() -> S) {
    run!(
        make,
        contact::a_token_is_given_once,
        contact::without_a_run_that_awaits_an_agent_there_is_no_token,
        contact::a_token_is_for_who_shows_the_nonce,
        contact::a_medium_is_read_by_the_bmc,
        contact::a_medium_is_fetched_by_one_firmware,
        contact::a_boot_script_is_for_one_address,
        contact::a_boot_script_waits_for_the_run,
        contact::a_reset_counts_once_the_script_was_fetched,
        contact::an_agent_that_does_not_sign_is_noted_once,
        proof::a_token_is_for_the_boot_that_was_proved,
        proof::a_proof_of_another_agent_is_dropped,
        proof::no_proof_without_a_run_that_awaits_it,
        proof::the_tpm_of_a_node_is_kept,
        contact::an_agent_may_ask_again_until_its_first_heartbeat,
        contact::of_two_agents_at_once_one_gets_the_token,
        contact::a_heartbeat_is_stored,
        contact::a_heartbeat_with_another_token_changes_nothing,
        contact::forgetting_lets_the_next_agent_in,
        contact::a_heartbeat_never_makes_a_node_write_stale,
        contact::heartbeats_of_many_nodes_at_once,
        contact::progress_has_a_time_of_its_own,
        contact::catalogues_are_kept,
        contact::the_bell_rings_for_contact,
        inventory::the_last_inventory_is_kept,
        inventory::a_large_one_is_refused,
        inventory::the_bell_rings_for_inventories,
        inventory::an_inspection_is_written_whole,
        inventory::half_an_inspection_is_never_written,
        resources::resources_come_and_go,
        resources::unique_values,
        resources::a_stale_resource_write_changes_nothing,
        resources::of_two_of_one_name_one_wins,
        resources::a_node_is_deleted_with_its_resources,
        resources::a_node_is_written_with_it_or_not_at_all,
        resources::an_allocation_ends_with_the_instance,
        resources::resources_ring_only_for_the_node,
        resources::the_bell_rings_for_ports,
        bundles::bundles_come_and_go,
        bundles::one_of_a_name_in_a_scope,
        bundles::a_node_is_deleted_with_its_bundles,
        bundles::changes_of_bundles_are_logged,
        certificates::one_comes_with_the_write,
        certificates::a_stale_certificate_changes_nothing,
        certificates::they_outlive_their_node,
        certificates::each_has_its_line_in_the_log,
        certificates::a_change_of_the_key_is_stored_once,
        conductors::the_last_report_of_each_controller_is_kept,
        events::the_log_has_the_events_of_all_nodes,
        events::a_certificate_is_logged_with_its_cause,
        events::a_reader_skips_no_event_of_many_writers,
        events::old_events_are_deleted,
        events::few_events_are_deleted_at_once,
        events::changes_of_resources_are_logged,
        discovery::an_unknown_machine_is_booted_once,
        discovery::a_known_machine_is_not_discovered,
        discovery::of_many_unknown_machines_at_once_few_are_booted,
        discovery::a_machine_becomes_a_node_whole_or_not_at_all,
        discovery::an_operators_decision_is_written_with_its_node,
        discovery::what_is_done_to_the_node_decides_about_its_machine,
        webhooks::one_controller_delivers_a_webhook,
        webhooks::of_two_at_once_one_gets_the_webhook,
        webhooks::dead_letters_are_kept_until_they_are_taken_away,
        lease::one_holder_at_a_time,
        lease::of_two_conductors_at_once_one_gets_the_lease,
        lease::a_lease_taken_over_fences_the_old_holder,
        lease::no_agent_is_forgotten_under_a_lost_lease,
        lease::renewing_and_giving_back,
        lease::an_epoch_is_never_given_twice,
        lease::a_lease_of_another_node_does_not_count,
        lease::leases_do_not_ring,
        lease::a_release_is_heard_by_those_who_wait,
        lease::all_instants_of_waiting_move_with_the_clock,
    );
}
