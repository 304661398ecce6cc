//! The allocator is built as `.cargo/config.toml` says; by cargo that runs outside this directory it is not.

use std::process::Command;

#[test]
fn the_allocator_has_an_arena_for_each_processor_and_gives_memory_back() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anneal-controller"));
    let output = command.arg("--version").env("MALLOC_CONF", "confirm_conf:true").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    for value in ["background_thread:true", "percpu_arena:percpu", "dirty_decay_ms:1000", "muzzy_decay_ms:0"]
    {
        assert!(said.contains(&format!("Set conf value: {value}\n")), "{value}: {said}");
    }
}
