// Streams of server-sent events. A browser connects again by itself after a loss, and each stream begins with how things stand.

const AGAIN = 3000;

/**
 * Follows a stream while the page is seen: a browser has few connections to one server, and a page in the background needs none.
 * `on.events` has a listener for each name of event. `on.lost` is called when the connection is lost, `on.back` when it stands again,
 * `on.refused` when the answer was no stream. Returns a function that ends it.
 */
export function follow(url, on) {
  let source = null;
  let isLost = false;
  let again = 0;
  const close = () => {
    clearTimeout(again);
    source?.close();
    source = null;
  };
  const open = () => {
    close();
    if (document.hidden) return;
    source = new EventSource(url());
    source.onopen = () => {
      if (isLost) on.back?.();
      isLost = false;
    };
    source.onerror = () => {
      if (!isLost) on.lost?.();
      isLost = true;
      // After an answer that is no stream (401, 404, 503) the browser does not try again.
      if (source?.readyState !== EventSource.CLOSED) return;
      again = setTimeout(open, AGAIN);
      on.refused?.();
    };
    for (const [name, heard] of Object.entries(on.events)) {
      source.addEventListener(name, (event) => heard(event.data ? JSON.parse(event.data) : null));
    }
  };
  document.addEventListener("visibilitychange", open);
  open();
  return () => {
    document.removeEventListener("visibilitychange", open);
    close();
  };
}

/** Calls `act` once for all calls within `pause` milliseconds, at the end of them. */
export function settled(act, pause) {
  let waits = 0;
  return () => {
    if (waits) return;
    waits = setTimeout(() => {
      waits = 0;
      act();
    }, pause);
  };
}
