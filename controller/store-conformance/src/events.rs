//! The log of events: every event of every committed write once, in an order in which the writes can have happened.

use super::samples::{assert_stale, at, enrolled, event, new_node, new_port};
use model::history::Severity;
use model::{Certificate, Event, EventKind, LoggedEvent, Node, ProvisionState, Resource, ResourceKind};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::{EventCursor, EventPage, KeptEvents, ResourceWrite, Store, StoreError};
use uuid::Uuid;

/// All events behind a cursor, read in pages of this size, and the cursor behind them.
async fn all<S: Store>(
    store: &S,
    mut after: Option<EventCursor>,
    limit: usize,
) -> (Vec<LoggedEvent>, EventCursor) {
    let mut found = Vec::new();
    loop {
        let EventPage { events, next, more } = store.events(after, limit).await.unwrap();
        assert!(events.len() <= limit && (!more || events.len() == limit), "{} of {limit}", events.len());
        assert_eq!(events.last().map_or(next, |(cursor, _)| *cursor), next);
        found.extend(events.into_iter().map(|(_, event)| event));
        after = Some(next);
        if !more {
            return (found, next);
        }
    }
}

fn of_kind(kind: EventKind, n: i64) -> Event {
    Event { kind, ..event(n) }
}

fn texts(events: &[LoggedEvent]) -> Vec<&str> {
    events.iter().map(|logged| logged.event.text.as_str()).collect()
}

pub async fn the_log_has_the_events_of_all_nodes<S: Store>(store: Arc<S>) {
    let (empty, start) = all(&*store, None, 1).await;
    assert_eq!((empty, start, store.newest_event().await.unwrap()), (vec![], EventCursor::at(0), start));
    let mut new = new_node("one");
    new.other.insert("owner".to_owned(), "alpha".into());
    let one = store.create_node(new, vec![event(1)]).await.unwrap();
    let other = store.create_node(new_node("other"), vec![event(2), event(3)]).await.unwrap();
    let mut changed = one.clone();
    changed.enter(ProvisionState::Verifying, Some(ProvisionState::Manageable), at(9));
    let events = vec![of_kind(EventKind::Change, 4), event(5)];
    let one = store.update_node(changed, events, None).await.unwrap();
    assert_stale(store.update_node(Node { version: 1, ..one.clone() }, vec![event(6)], None).await, one.uuid);
    let events = vec![of_kind(EventKind::Deleted, 7)];
    store.delete_node(other.uuid, other.version, events).await.unwrap();

    for limit in [1, 2, 6, 100] {
        let (found, end) = all(&*store, None, limit).await;
        assert_eq!(texts(&found), [1, 2, 3, 4, 5, 7].map(|n| format!("event {n}")), "pages of {limit}");
        assert_eq!(store.newest_event().await.unwrap(), end);
        assert_eq!(all(&*store, Some(end), limit).await, (vec![], end));
    }
    let (found, _) = all(&*store, Some(start), 100).await;
    let of: Vec<_> = found.iter().map(|logged| logged.node).collect();
    assert_eq!(of, [one.uuid, other.uuid, other.uuid, one.uuid, one.uuid, other.uuid].map(Some));
    let moved = &found[4];
    assert_eq!((moved.node_name.as_deref(), moved.owner.as_deref()), (Some("one"), Some("alpha")));
    assert_eq!(moved.event.state, Some(ProvisionState::Enroll), "before the write");
    assert_eq!(moved.provision_state, Some(ProvisionState::Verifying), "after it");
    assert_eq!(moved.target_provision_state, Some(ProvisionState::Manageable));
    assert_eq!((found[5].event.state, found[5].provision_state), (Some(ProvisionState::Enroll), None));

    // A history has the same events, but for those that are none of it.
    let history = store.history(one.uuid).await.unwrap();
    let logged: Vec<_> = [0, 4].map(|index: usize| found[index].event.clone()).to_vec();
    assert_eq!(history, logged);
}

pub async fn a_certificate_is_logged_with_its_cause<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await;
    let certificate = Certificate {
        id: "ab".repeat(32),
        node: node.uuid,
        number: 1,
        at: at(3),
        finding: "erased".to_owned(),
        command_id: "c-1".to_owned(),
        file: "{}".to_owned(),
    };
    let cause = Event { request_id: Some("req-1".to_owned()), ..event(2) };
    let stale = Certificate { number: 2, ..certificate.clone() };
    assert_stale(store.certify(node.clone(), vec![event(1)], None, stale).await, node.uuid);
    store.certify(node.clone(), vec![cause], None, certificate.clone()).await.unwrap();
    let (found, _) = all(&*store, None, 100).await;
    let kinds: Vec<_> = found.iter().map(|logged| logged.event.kind).collect();
    assert_eq!(kinds, [EventKind::Transition, EventKind::Record]);
    let record = &found[1];
    let named = record.certificate.as_ref().unwrap();
    assert_eq!((named.id.as_str(), named.number, named.finding.as_str()), (&*certificate.id, 1, "erased"));
    assert_eq!(record.event.request_id.as_deref(), Some("req-1"));
    assert_eq!(record.event.command_id.as_deref(), Some("c-1"));
    assert_eq!(store.history(node.uuid).await.unwrap().len(), 1);
}

/// Writers of many nodes, some of which lose against others, and readers that go on from cursor to cursor meanwhile: each reader gets
/// each event once, those of a node in the order of its history, and all readers get them in the same order.
pub async fn a_reader_skips_no_event_of_many_writers<S: Store + 'static>(store: Arc<S>) {
    const WRITERS: usize = 8;
    const WRITES: usize = 25;
    let shared = enrolled(&*store, "shared").await.uuid;
    let write = |writer: usize| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let own = enrolled(&*store, &format!("own-{writer}")).await.uuid;
            for n in 0..WRITES {
                let node = if n % 5 == 0 { shared } else { own };
                loop {
                    let read = store.node(node).await.unwrap();
                    let text = format!("{writer} {n}");
                    let event = Event::new(EventKind::Step, Severity::Info, text, at(0));
                    match store.update_node(read, vec![event], None).await {
                        Err(StoreError::Stale(_)) => {}
                        written => {
                            written.unwrap();
                            break;
                        }
                    }
                }
            }
        })
    };
    let follow = || {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let (mut after, mut found) = (None, Vec::new());
            while found.len() < WRITERS * WRITES {
                let page = store.events(after, 7).await.unwrap();
                after = Some(page.next);
                found.extend(page.events.into_iter().map(|(_, event)| event));
                // A store in memory never waits, and the writers need a turn.
                tokio::task::yield_now().await;
            }
            (found, after)
        })
    };
    let readers = [follow(), follow()];
    let writers: Vec<_> = (0..WRITERS).map(write).collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let [first, second] = readers;
    let ((first, end), (second, _)) = (first.await.unwrap(), second.await.unwrap());
    assert_eq!(first, second);
    assert_eq!(all(&*store, end, 100).await.0, vec![], "no more than were written");
    let mut by_node: BTreeMap<Uuid, Vec<Event>> = BTreeMap::new();
    for logged in first {
        by_node.entry(logged.node.unwrap()).or_default().push(logged.event);
    }
    assert_eq!(by_node.len(), WRITERS + 1);
    for (node, events) in by_node {
        assert_eq!(store.history(node).await.unwrap(), events, "in the order of the history");
    }
}

pub async fn old_events_are_deleted<S: Store>(store: Arc<S>) {
    let second = |n: i64| at(n * 1_000_000);
    let node = enrolled(&*store, "one").await;
    let events = (1..=10).map(|n| Event { at: second(n), ..event(n) }).collect();
    let node = store.update_node(node, events, None).await.unwrap();
    let first = store.events(None, 1).await.unwrap();
    let kept = |age: u64, number: u64| KeptEvents { age: Duration::from_secs(age), number };
    let prune = async |kept: KeptEvents| store.prune_events(kept, second(10)).await.unwrap();
    let left = async || {
        let (found, _) = all(&*store, None, 3).await;
        found.iter().map(|logged| (logged.event.at.0 - at(0).0) / 1_000_000).collect::<Vec<_>>()
    };
    assert_eq!(prune(kept(9, 10)).await, 0, "nothing is older, or more");
    assert_eq!(prune(kept(8, 10)).await, 1);
    assert_eq!(left().await, (2..=10).collect::<Vec<_>>());
    assert_eq!(texts(&all(&*store, Some(first.next), 3).await.0)[0], "event 2", "nothing behind it is gone");
    assert_eq!(prune(kept(99, 7)).await, 2);
    assert_eq!(left().await, (4..=10).collect::<Vec<_>>());
    let gone = match store.events(Some(first.next), 3).await {
        Err(StoreError::CursorGone { oldest }) => oldest,
        other => panic!("the cursor is gone, got {other:?}"),
    };
    assert_eq!(texts(&all(&*store, Some(gone), 3).await.0)[0], "event 4", "where it can go on");
    let end = store.newest_event().await.unwrap();
    for (place, tag) in [(end.place + 1, 0), (end.place, end.tag ^ 1)] {
        let other = store.events(Some(EventCursor { place, tag }), 3).await;
        assert!(matches!(other, Err(StoreError::CursorGone { .. })), "of another log: {other:?}");
    }
    // Also of an empty log the end stays where it is, and numbers are not given again.
    assert_eq!(prune(kept(0, 0)).await, 7);
    assert_eq!(all(&*store, None, 3).await.0, vec![]);
    assert_eq!(all(&*store, Some(end), 3).await.0, vec![]);
    assert_eq!(store.newest_event().await.unwrap().place, end.place);
    store.update_node(node, vec![event(11)], None).await.unwrap();
    assert_eq!(texts(&all(&*store, Some(end), 3).await.0), ["event 11"]);
    assert_eq!(store.newest_event().await.unwrap().place, end.place + 1);
}

/// However many are too old, a call deletes a bounded number of them.
pub async fn few_events_are_deleted_at_once<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await;
    let events = (0..1200).map(event).collect();
    store.update_node(node, events, None).await.unwrap();
    let kept = KeptEvents { age: Duration::ZERO, number: 10 };
    assert_eq!(store.prune_events(kept, at(5000)).await.unwrap(), KeptEvents::AT_ONCE);
    assert_eq!(store.prune_events(kept, at(5000)).await.unwrap(), 200);
    assert_eq!(store.prune_events(kept, at(5000)).await.unwrap(), 0);
}

/// Changes of resources are logged with the write too; those of a node with the node.
pub async fn changes_of_resources_are_logged<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await;
    let port = new_port(node.uuid, 1);
    let mut chassis = Resource::new(ResourceKind::Chassis, Uuid::new_v4(), at(0));
    chassis.name = Some("rack".to_owned());
    let change = |n| vec![of_kind(EventKind::Change, n)];
    store.write_resource(ResourceWrite::Create(port.clone()), None, change(1)).await.unwrap();
    let rejected = store.write_resource(ResourceWrite::Create(port.clone()), None, change(2)).await;
    assert!(rejected.is_err());
    store.write_resource(ResourceWrite::Create(chassis.clone()), None, change(3)).await.unwrap();
    let gone = ResourceWrite::Delete(ResourceKind::Port, port.uuid, 1);
    store.write_resource(gone, Some((node.clone(), vec![event(4)])), change(5)).await.unwrap();
    let (found, _) = all(&*store, None, 100).await;
    assert_eq!(texts(&found), [1, 3, 4, 5].map(|n| format!("event {n}")));
    let named = |index: usize| found[index].resource.as_ref().map(|one| (one.kind, one.uuid));
    assert_eq!(named(0), Some((ResourceKind::Port, port.uuid)));
    assert_eq!((named(1), found[1].node), (Some((ResourceKind::Chassis, chassis.uuid)), None));
    assert_eq!(found[1].resource.as_ref().unwrap().name.as_deref(), Some("rack"));
    assert_eq!((named(2), named(3)), (None, Some((ResourceKind::Port, port.uuid))));
    for logged in [&found[0], &found[2], &found[3]] {
        assert_eq!((logged.node, logged.node_name.as_deref()), (Some(node.uuid), Some("one")));
    }
    assert_eq!(store.history(node.uuid).await.unwrap().len(), 1);
}
