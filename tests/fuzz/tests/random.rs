//! Each target with random changes of its seeds. `FUZZ_INPUTS` is how many inputs each gets, `FUZZ_SEED` repeats a run.

use std::fs;
use std::panic::catch_unwind;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use fastrand::Rng;
use fuzz::{TARGETS, Target, changed, read_virtual_media, seeds};

/// For each target.
const INPUTS: u64 = 5_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

#[test]
fn no_input_breaks_a_promise() {
    let seed = number("FUZZ_SEED").unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        now.as_secs()
    });
    println!("FUZZ_SEED={seed}");
    let inputs = number("FUZZ_INPUTS").unwrap_or(INPUTS);
    std::thread::scope(|scope| {
        for (name, target) in TARGETS {
            scope.spawn(move || try_target(name, target, seed, inputs));
        }
    });
}

fn try_target(name: &str, target: Target, seed: u64, inputs: u64) {
    let mut random = Rng::with_seed(seed);
    let seeds = seeds(name).expect("the seeds can be read");
    for seed in &seeds {
        try_input(name, target, seed);
    }
    for _ in 0..inputs {
        try_input(name, target, &changed(&seeds, &mut random));
    }
}

/// An input that breaks a promise is kept in a file, which `cargo xtask fuzz` reads as well.
fn try_input(name: &str, target: Target, input: &[u8]) {
    if catch_unwind(|| target(input)).is_err() {
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{name}"));
        fs::write(&file, input).expect("the input can be kept");
        panic!("{name} breaks a promise; the input is {}", file.display());
    }
}

/// Holds for every seed of `manager`, and not for what becomes of them.
fn breaks(input: &[u8]) {
    let seeds = seeds("manager").expect("the seeds can be read");
    assert!(seeds.iter().any(|seed| seed.len() >= input.len()), "longer than every seed");
}

#[test]
fn a_broken_promise_is_found() {
    assert!(catch_unwind(|| try_target("manager", breaks, 1, 0)).is_ok());
    assert!(catch_unwind(|| try_target("manager", breaks, 1, 1000)).is_err());
}

/// Else the changes of them would reach no more than the first check.
#[test]
fn every_seed_of_virtual_media_is_read_to_its_end() {
    let seeds = seeds("virtual_media").expect("the seeds can be read");
    let brings = |seed: &Vec<u8>| {
        let media = read_virtual_media(seed).expect("it is not empty")?;
        Ok((media.parameters, media.network_data.is_some()))
    };
    let parameters = "ipa-api-url=http://192.0.2.1:6385 ipa-agent-token=SECRET boot_method=vmedia".to_owned();
    let (cd, fat) = (Ok((String::new(), true)), Ok((parameters, false)));
    let endless = Err("parameters.txt has 98304 bytes of at most 65536".to_owned());
    assert_eq!(seeds.iter().map(brings).collect::<Vec<_>>(), [cd, fat.clone(), endless, fat]);
}
