//! Whatever program links this crate can be started again as the process that looks at a device with libblkid
//! (`signatures`): the agent, and every test program.

use crate::signatures;

/// Runs before `main`, in every program.
// SAFETY: the C library calls each function of this section once, with one thread. `before_main` relies on nothing that
// `main` prepares: Rust's arguments are set by a function of this section with a priority, which comes first.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;

extern "C" fn before_main() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == signatures::WORD) {
        let request = arguments.next().and_then(|request| request.into_string().ok());
        std::process::exit(signatures::run(&request.unwrap_or_default()));
    }
}
