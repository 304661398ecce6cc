//! What is drawn for the worlds of many seeds.

use sim::clock_jumps;
use sim::controllers::{Controllers, Disturbance};
use std::time::Duration;

#[test]
fn every_other_seed_has_two_or_three_controllers() {
    let worlds: Vec<_> = (0..200).map(Controllers::drawn).collect();
    assert_eq!(worlds[7], Controllers::drawn(7));
    let with = |count: usize| worlds.iter().filter(|world| world.ahead.len() == count).count();
    assert!(with(0) > 60 && with(2) > 30 && with(3) > 30);
    for what in [
        Disturbance::Kill,
        Disturbance::Stop,
        Disturbance::Pause,
        Disturbance::PauseInCall,
        Disturbance::CutOff,
        Disturbance::StoreGone,
    ] {
        assert!(worlds.iter().flat_map(|world| &world.faults).any(|fault| fault.what == what), "{what:?}");
    }
    assert!(worlds.iter().flat_map(|world| &world.faults).any(|fault| fault.lasts.is_none()));
}

#[test]
fn jumps_come_from_a_stream_of_their_own() {
    let hour = Duration::from_secs(3600);
    let worlds: Vec<_> = (0..200).map(|seed| clock_jumps::drawn(seed, hour)).collect();
    assert_eq!(worlds[7], clock_jumps::drawn(7, hour));
    let (calm, jumps): (Vec<_>, Vec<_>) = worlds.iter().partition(|jumps| jumps.is_empty());
    assert!(calm.len() > 60 && jumps.len() > 60);
    let all = jumps.into_iter().flatten().collect::<Vec<_>>();
    assert!(all.iter().any(|jump| jump.by > 1000) && all.iter().any(|jump| jump.by < -1000));
    assert!(all.iter().all(|jump| jump.at < hour));
}
