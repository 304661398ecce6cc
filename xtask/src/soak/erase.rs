//! A thousand kills of an erase at random moments, each seen from outside.

use anyhow::Result;

use crate::sh;

const KILLS: &str = "1000";

pub fn run(seed: Option<&str>) -> Result<()> {
    let mut test = sh::cargo();
    test.args(["test", "--package", "hwm-generic", "--test", "main", "killed_at_any_moment"]);
    test.args(["--", "--nocapture"]).env("ERASE_KILLS", KILLS);
    sh::run(test.envs(seed.map(|seed| ("ERASE_SEED", seed))))
}
