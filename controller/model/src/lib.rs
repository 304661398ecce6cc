//! Nouns and rules of the controller: no async, SQL, HTTP or clock.
