//! Random changes of an input.

use fastrand::Rng;

/// Longest input, in bytes. libFuzzer's limit is the same.
const LONGEST: usize = 8192;
/// Most changes of one input.
const MOST: usize = 8;
/// Most bytes that one change adds or removes.
const PIECE: usize = 64;
/// Lengths and counts at which parsers break.
const EDGES: [u64; 8] = [0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, u64::MAX];

/// One of the seeds with some changes, or random bytes: always where there is no seed, else once in eight times.
pub fn changed(seeds: &[Vec<u8>], random: &mut Rng) -> Vec<u8> {
    if seeds.is_empty() || random.u8(..8) == 0 {
        let length = random.usize(..512);
        return bytes(length, random);
    }
    let mut input = seeds[random.usize(..seeds.len())].clone();
    for _ in 0..random.usize(1..=MOST) {
        change(&mut input, seeds, random);
    }
    input.truncate(LONGEST);
    input
}

fn bytes(length: usize, random: &mut Rng) -> Vec<u8> {
    std::iter::repeat_with(|| random.u8(..)).take(length).collect()
}

fn change(input: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Rng) {
    let at = random.usize(..=input.len());
    let length = random.usize(1..=PIECE);
    let end = (at + length).min(input.len());
    match random.u8(..7) {
        0 => input.truncate(at),
        1 => drop(input.drain(at..end)),
        2 => {
            let piece = bytes(length, random);
            input.splice(at..at, piece);
        }
        3 => {
            let piece = input[at..end].to_vec();
            input.splice(at..at, piece);
        }
        4 => {
            // What another seed has there.
            let other = &seeds[random.usize(..seeds.len())];
            input.truncate(at);
            input.extend_from_slice(other.get(at..).unwrap_or_default());
        }
        5 => {
            let edge = EDGES[random.usize(..EDGES.len())];
            let edge = if random.bool() { edge.to_le_bytes() } else { edge.to_be_bytes() };
            for (to, from) in input[at..].iter_mut().zip(&edge[..1 << random.u8(..4)]) {
                *to = *from;
            }
        }
        _ => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << random.u8(..8);
            }
        }
    }
}
