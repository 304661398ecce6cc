//! Webhooks: one controller delivers at a time, and how far it got is stored with what was given up.

use super::samples::{at, enrolled, event, new_node};
use model::{DeadLetter, Delivery, LoggedEvent};
use std::sync::Arc;
use store::{EventCursor, Store};

fn letter(event: &LoggedEvent, webhook: &str, place: u64) -> DeadLetter {
    let (webhook, error) = (webhook.to_owned(), "it answered with status 500".to_owned());
    DeadLetter { webhook, place, event: event.clone(), at: at(9), tries: 3, error, retry: false }
}

pub async fn one_controller_delivers_a_webhook<S: Store>(store: Arc<S>) {
    store.create_node(new_node("one"), vec![event(1)]).await.unwrap();
    let newest = store.newest_event().await.unwrap();
    let held = store.take_webhook("cmdb", "a", at(0), at(10)).await.unwrap().unwrap();
    let new = Delivery::new("cmdb", newest.to_string());
    assert_eq!(held, new.held("a", at(10)), "a new one begins at the end");
    assert_eq!(store.take_webhook("cmdb", "b", at(9), at(19)).await.unwrap(), None);
    let again = store.take_webhook("cmdb", "a", at(9), at(12)).await.unwrap().unwrap();
    assert_eq!(again.until, at(12), "its holder may");
    let mut far = again.clone();
    far.advance("7-00000000".to_owned());
    assert!(store.put_delivery(far.clone(), None).await.unwrap());
    // Another takes over when its time is over, and goes on where it was.
    let taken = store.take_webhook("cmdb", "b", at(12), at(22)).await.unwrap().unwrap();
    assert_eq!(taken, far.clone().held("b", at(22)));
    assert!(!store.put_delivery(far, None).await.unwrap(), "the first has lost it");
    assert!(
        !store.put_delivery(Delivery::new("nosuch", "0-0".to_owned()).held("a", at(9)), None).await.unwrap()
    );
    assert_eq!(store.deliveries().await.unwrap(), [taken]);
}

pub async fn of_two_at_once_one_gets_the_webhook<S: Store + 'static>(store: Arc<S>) {
    let take = |holder: &'static str| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.take_webhook("cmdb", holder, at(0), at(10)).await.unwrap() })
    };
    let (a, b) = (take("a"), take("b"));
    let got = [a.await.unwrap(), b.await.unwrap()];
    assert_eq!(got.iter().flatten().count(), 1, "{got:?}");
}

pub async fn dead_letters_are_kept_until_they_are_taken_away<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await;
    store.update_node(node, vec![event(1), event(2)], None).await.unwrap();
    let page = store.events(None, 9).await.unwrap();
    let [(first, one), (second, two)] = &page.events[..] else { panic!("two events") };
    let held = store.take_webhook("cmdb", "a", at(0), at(10)).await.unwrap().unwrap();
    let mut far = held.clone();
    far.advance(second.to_string());
    let lost = far.clone().held("b", at(10));
    assert!(!store.put_delivery(lost, Some(letter(two, "cmdb", second.place))).await.unwrap());
    assert_eq!(store.dead_letters("cmdb", false, 9).await.unwrap(), [], "both or none");
    let letters = [letter(one, "cmdb", first.place), letter(two, "cmdb", second.place)];
    assert!(store.put_delivery(far, Some(letters[1].clone())).await.unwrap());
    store.put_dead_letter(letters[0].clone()).await.unwrap();
    store.put_dead_letter(letter(one, "other", first.place)).await.unwrap();
    assert_eq!(store.dead_letters("cmdb", false, 9).await.unwrap(), letters);
    assert_eq!(store.dead_letters("cmdb", false, 1).await.unwrap(), letters[..1]);
    assert_eq!(store.dead_letters("cmdb", true, 9).await.unwrap(), []);
    let again = DeadLetter { retry: true, ..letters[1].clone() };
    store.put_dead_letter(again.clone()).await.unwrap();
    assert_eq!(store.dead_letters("cmdb", true, 9).await.unwrap(), [again]);
    store.remove_dead_letter("cmdb", second.place).await.unwrap();
    store.remove_dead_letter("cmdb", second.place).await.unwrap();
    assert_eq!(store.dead_letters("cmdb", false, 9).await.unwrap(), letters[..1]);
    assert_eq!(store.dead_letters("other", false, 9).await.unwrap().len(), 1);
    assert_eq!(EventCursor::parse(&held.after), Some(page.next));
}
