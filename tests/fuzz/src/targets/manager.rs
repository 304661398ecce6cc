//! Lines and messages of a hardware manager in a process of its own.

use hwm_sdk::protocol::{LineBuffer, Message, like};

/// Reads one input; panics when a promise does not hold.
pub fn run(input: &[u8]) {
    let mut lines = LineBuffer::new();
    let mut rest = input;
    while !rest.is_empty() {
        let room = lines.room();
        let count = room.len().min(rest.len());
        room[..count].copy_from_slice(&rest[..count]);
        rest = &rest[count..];
        lines.filled(count);
        while let Ok(Some(line)) = lines.line() {
            if let Ok(message) = Message::read(line) {
                let Ok(written) = message.line() else { continue };
                let again = Message::read(&written).expect("what was written can be read");
                assert_eq!(again.line().as_ref(), Ok(&written));
            }
        }
    }
    if let Ok(text) = std::str::from_utf8(input)
        && let Some((pattern, value)) = text.split_once('\n')
    {
        let _ = like(pattern, value);
    }
}
