//! The bytes of DHCPv6 (RFC 8415, sections 8 and 21). Pure.
//!
//! By hand: dhcproto 0.15 panics on options that are shorter than their fields (11, 13, 16 and 17), and both directions together
//! are shorter than a fence around it.

/// Type, and the number by which a client knows the answer again.
const HEADER: usize = 4;

/// Options in a message, or inside another option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Options<'a>(Vec<(u16, &'a [u8])>);

impl<'a> Options<'a> {
    /// All of them; `None` where the last one is cut off.
    pub(super) fn parse(mut bytes: &'a [u8]) -> Option<Self> {
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let ([code_high, code_low, length_high, length_low], rest) = bytes.split_first_chunk::<4>()?;
            let length = u16::from_be_bytes([*length_high, *length_low]);
            let (value, rest) = rest.split_at_checked(length.into())?;
            all.push((u16::from_be_bytes([*code_high, *code_low]), value));
            bytes = rest;
        }
        Some(Self(all))
    }

    /// The values of an option, in their order.
    pub(super) fn all(&self, code: u16) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter(move |(known, _)| *known == code).map(|(_, value)| *value)
    }

    /// The first value of an option.
    pub(super) fn first(&self, code: u16) -> Option<&'a [u8]> {
        self.all(code).next()
    }
}

/// What a client sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message<'a> {
    pub(super) kind: u8,
    pub(super) transaction: [u8; 3],
    pub(super) options: Options<'a>,
}

impl<'a> Message<'a> {
    /// `None` where it is cut off.
    pub(super) fn parse(packet: &'a [u8]) -> Option<Self> {
        let ([kind, transaction @ ..], options) = packet.split_first_chunk::<HEADER>()?;
        Some(Self { kind: *kind, transaction: *transaction, options: Options::parse(options)? })
    }
}

/// An answer, or what is inside an option, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bytes(Vec<u8>);

impl Bytes {
    /// The header of a message.
    pub(super) fn message(kind: u8, transaction: [u8; 3]) -> Self {
        Self([&[kind][..], &transaction].concat())
    }

    /// The fields with which an option begins.
    pub(super) fn fields(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// An option more. Its value is cut at 65535 bytes, which none of ours has.
    pub(super) fn option(mut self, code: u16, value: &[u8]) -> Self {
        let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
        self.0.extend(code.to_be_bytes());
        self.0.extend(length.to_be_bytes());
        self.0.extend(&value[..usize::from(length)]);
        self
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_is_read() {
        let inside = Bytes::fields(&[0, 0, 0, 9]).option(5, &[7; 3]).finish();
        let packet = Bytes::message(3, [1, 2, 3]).option(3, &inside).option(59, b"url").finish();
        assert_eq!(packet[..8], [3, 1, 2, 3, 0, 3, 0, 11]);
        let message = Message::parse(&packet).unwrap();
        assert_eq!((message.kind, message.transaction), (3, [1, 2, 3]));
        assert_eq!(message.options.first(59), Some(&b"url"[..]));
        assert_eq!(Options::parse(&inside[4..]).unwrap().first(5), Some(&[7; 3][..]));
        assert_eq!(message.options.first(1), None);
    }

    proptest! {
        #[test]
        fn a_message_is_read_whole_or_not_at_all(packet in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Some(message) = Message::parse(&packet) {
                let Options(all) = message.options;
                let begin = Bytes::message(message.kind, message.transaction);
                let again = all.iter().fold(begin, |bytes, (code, value)| bytes.option(*code, value));
                prop_assert_eq!(again.finish(), packet);
            }
        }
    }
}
