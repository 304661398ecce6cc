//! Pages that stay open, without a browser: how many a controller serves, and what they cost it.

use anyhow::Result;
use browser::{Controller, Login, open_pages};
use std::time::Duration;

/// As in `soak --part page` with fewer pages. How much of a processor they take is measured there.
#[test]
fn open_pages_are_served_and_cost_little_memory() -> Result<()> {
    let controller = Controller::start(Login::Open)?;
    let node = controller.enrol("n1", &[])?;
    assert!(open_pages::views(&controller, 3)? > Duration::ZERO);
    let cost = open_pages::open(&controller, &node, 150, Duration::from_secs(1))?;
    assert!(cost.memory < 48 << 20, "{cost:?}");
    Ok(())
}
