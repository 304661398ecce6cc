//! The page of a list by an order of which the store has no index: everything that matches is read, some at a time, and no more
//! than one page is kept.

use crate::app::App;
use crate::page::Page;
use std::cmp::Ordering;
use std::time::{Duration, Instant};
use store::StoreError;

/// How many are read at a time.
pub const AT_ONCE: usize = 500;

/// The first of what was read so far.
pub struct FirstPage<T, F> {
    order: F,
    after: Option<T>,
    first: Vec<T>,
    limit: usize,
    begun: Instant,
    time_limit: Duration,
}

impl<T, F: Fn(&T, &T) -> Ordering> FirstPage<T, F> {
    /// An empty page behind `after`.
    pub fn new(app: &App, page: &Page, order: F, after: Option<T>) -> Self {
        let time_limit = app.settings.list_time_limit;
        Self { order, after, first: Vec::new(), limit: page.limit, begun: Instant::now(), time_limit }
    }

    /// Take what was read next. True if more is to be read, of which there is some if `more`.
    ///
    /// # Errors
    /// [`StoreError::TooSlow`]: it takes longer than the time limit of lists.
    pub fn take(&mut self, read: Vec<T>, more: bool) -> Result<bool, StoreError> {
        let after = self.after.as_ref();
        let is_behind = |item: &T| after.is_none_or(|after| (self.order)(item, after) == Ordering::Greater);
        self.first.extend(read.into_iter().filter(is_behind));
        self.first.sort_by(&self.order);
        // One more than the page shows whether another page follows.
        self.first.truncate(self.limit.saturating_add(1));
        if more && self.begun.elapsed() >= self.time_limit {
            return Err(StoreError::TooSlow(self.time_limit));
        }
        Ok(more)
    }

    /// The page, and whether another one follows.
    pub fn end(mut self) -> (Vec<T>, bool) {
        let more = self.first.len() > self.limit;
        self.first.truncate(self.limit);
        (self.first, more)
    }
}
