//! Lines and messages of any bytes: what is whole comes out whole, in whatever pieces it came in; nothing holds more
//! than a line; nothing panics.

use hwm_sdk::protocol::{LINE_MAX, LineBuffer, LineReader, Message, TooLong};
use proptest::prelude::*;
use std::io::{Read, Write};

/// Fills the buffer from `source` in pieces of at most `piece` bytes.
fn lines(mut source: &[u8], piece: usize) -> Result<(Vec<Vec<u8>>, usize), TooLong> {
    let mut buffer = LineBuffer::new();
    let mut found = Vec::new();
    loop {
        while let Some(line) = buffer.line()? {
            found.push(line.to_vec());
        }
        assert!(buffer.capacity() <= LINE_MAX);
        if source.is_empty() {
            return Ok((found, buffer.rest()));
        }
        let room = buffer.room();
        let count = room.len().min(piece).min(source.len());
        assert!(count > 0);
        room[..count].copy_from_slice(&source[..count]);
        source = &source[count..];
        buffer.filled(count);
    }
}

proptest! {
    #[test]
    fn lines_come_out_as_they_went_in(
        wanted in prop::collection::vec(prop::collection::vec(any::<u8>().prop_map(|b| if b == 10 { 11 } else { b }), 0..9_000), 0..5),
        tail in prop::collection::vec(11u8.., 0..40),
        piece in 1usize..12_000,
    ) {
        let mut bytes: Vec<u8> = wanted.iter().flat_map(|line| [line.as_slice(), b"\n"].concat()).collect();
        bytes.extend(&tail);
        prop_assert_eq!(lines(&bytes, piece), Ok((wanted, tail.len())));
    }

    #[test]
    fn any_bytes_are_a_message_or_an_error_and_a_message_survives(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survives(&bytes)?;
    }

    /// Near the grammar, where the bugs live.
    #[test]
    fn any_members_are_a_message_or_an_error_and_a_message_survives(
        members in prop::collection::vec((
            prop::sample::select(vec!["jsonrpc", "id", "method", "params", "result", "error", "other"]),
            prop::sample::select(vec![
                "\"2.0\"", "1", "null", "-1", "1e3", "18446744073709551615", "18446744073709551616", "\"init\"",
                "{}", "{\"a\":[1,{}]}", "[]", "true", "{\"code\":-32001,\"message\":\"m\"}", "\"\\ud800\"", "{",
            ]),
        ), 0..6),
    ) {
        let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        survives(format!("{{{}}}", members.join(",")).as_bytes())?;
    }
}

fn survives(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(message) = Message::read(bytes) {
        let line = message.line().expect("it was shorter than a line");
        let again = Message::read(&line).expect("what is written is read");
        prop_assert_eq!(again.line().expect("as before"), line);
    }
    Ok(())
}

#[test]
fn a_line_may_have_a_mebibyte_and_not_a_byte_more() {
    let longest = [vec![b'x'; LINE_MAX - 1], b"\nrest\n".to_vec()].concat();
    let (found, rest) = lines(&longest, 70_000).expect("it fits");
    assert_eq!((found[0].len(), found[1].as_slice(), rest), (LINE_MAX - 1, b"rest".as_slice(), 0));
    let longer = [vec![b'x'; LINE_MAX], b"\n".to_vec()].concat();
    assert_eq!(lines(&longer, 70_000), Err(TooLong));
}

#[test]
fn memory_is_given_back_after_a_long_line() {
    let mut buffer = LineBuffer::new();
    let feed = |buffer: &mut LineBuffer, mut bytes: &[u8]| {
        while !bytes.is_empty() {
            let count = bytes.read(buffer.room()).expect("reads");
            buffer.filled(count);
            assert!(buffer.has_line().is_ok());
        }
    };
    feed(&mut buffer, &[vec![b'x'; 900_000], b"\n".to_vec()].concat());
    assert!(buffer.capacity() >= 900_000);
    assert!(buffer.line().expect("a line").is_some());
    assert_eq!(buffer.line(), Ok(None));
    feed(&mut buffer, b"{}\n");
    assert!(buffer.capacity() < 20_000, "{}", buffer.capacity());
}

#[test]
fn a_reader_distinguishes_the_end_from_an_end_within_a_line() {
    let mut whole = LineReader::new(b"a\nb\n".as_slice());
    assert_eq!(whole.next_line().expect("reads"), Some(b"a".as_slice()));
    assert_eq!(whole.next_line().expect("reads"), Some(b"b".as_slice()));
    assert_eq!(whole.next_line().expect("ends"), None);
    let mut torn = LineReader::new(b"a\nb".as_slice());
    assert!(torn.next_line().expect("reads").is_some());
    assert_eq!(torn.next_line().expect_err("torn").kind(), std::io::ErrorKind::UnexpectedEof);
    let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair");
    let flood = std::thread::spawn(move || while ours.write_all(&[b'x'; 65_536]).is_ok() {});
    let mut flooded = LineReader::new(theirs);
    assert_eq!(flooded.next_line().expect_err("too long").kind(), std::io::ErrorKind::InvalidData);
    drop(flooded);
    flood.join().expect("it ends");
}

/// Found by the fuzzer `manager`: read without care the last digit became a 6, and then a 5.
#[test]
fn a_fraction_that_is_passed_on_keeps_its_last_digit() {
    let line = br#"{"jsonrpc":"2.0","method":"progress","params":{"rate":7.777777777777777e83}}"#;
    survives(line).unwrap();
    let written = Message::read(line).unwrap().line().unwrap();
    assert!(String::from_utf8(written).unwrap().contains("7.777777777777777e83"));
}
