//! Repository tasks.
fn main() {
    eprintln!("usage: cargo xtask <demo|test|image|mutants|ci>");
    std::process::exit(2);
}
