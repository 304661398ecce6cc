//! Output, kept up to a limit.

/// The first bytes of an output without end, and the count of the rest.
#[derive(Debug)]
pub struct OutputBuffer {
    bytes: Vec<u8>,
    limit: usize,
    dropped: u64,
}

impl OutputBuffer {
    /// Keep at most `limit` bytes between two [`take`](Self::take)s.
    pub fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, dropped: 0 }
    }

    /// More output.
    pub fn push(&mut self, bytes: &[u8]) {
        let room = self.limit.saturating_sub(self.bytes.len()).min(bytes.len());
        self.bytes.extend_from_slice(&bytes[..room]);
        self.dropped = self.dropped.saturating_add((bytes.len() - room) as u64);
    }

    /// What was kept, as text, with a last line that counts what was not; and begin anew.
    pub fn take(&mut self) -> String {
        let bytes = std::mem::take(&mut self.bytes);
        let dropped = std::mem::take(&mut self.dropped);
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if dropped > 0 {
            text.push_str(&format!("\n[{dropped} more bytes of output were dropped]\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::OutputBuffer;

    #[test]
    fn the_beginning_is_kept_and_the_rest_is_counted() {
        let mut kept = OutputBuffer::new(4);
        for _ in 0..3 {
            kept.push(b"abc");
        }
        assert_eq!(kept.take(), "abca\n[5 more bytes of output were dropped]\n");
        kept.push(b"new");
        assert_eq!(kept.take(), "new");
        assert_eq!(kept.take(), "");
    }
}
