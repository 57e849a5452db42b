/**
 * Topics: events under a key, from any thread to every thread that listens to that key. Beside commands (one answer) and
 * replicas (one value) the third way across threads: to resume or cancel what another thread generates, to watch live.
 */

/** Names a topic. Events must survive `structuredClone`, and nobody changes one once it is published. */
export interface TopicToken<Event> {
  readonly kind: 'topic'
  readonly name: string
  /** Events that may wait for one listener; one more, and it loses its subscription. */
  readonly maxWaiting: number
  /** Never set; carries the type. */
  readonly shape?: Event
}

export interface TopicListener<Event> {
  /**
   * One event; those of one publishing thread come in order. May answer later: the next one waits meanwhile. What it
   * throws or rejects with ends the subscription.
   */
  onEvent(event: Event): void | Promise<void>
  /** The subscription is over and no event follows: the listener was too slow (`topic_listener_slow`), or it failed. */
  onLost(error: Error): void
}

export interface Subscription {
  /** Resolves when every thread knows of it: from then on no event is missed. Never rejects. */
  readonly ready: Promise<void>
  /** No event comes any more, at once; safe to call twice. */
  close(): void
}

export interface Topic<Event> {
  /**
   * To all who listen to the key, on this thread before it returns. Never waits and never fails for a listener's sake; where
   * nobody listens it costs a look into a table.
   *
   * @returns false when nobody listens
   * @throws DataCloneError when somebody listens on another thread and the event cannot cross
   */
  publish(key: string, event: Event): boolean
  /** True where making an event is worth its cost. */
  hasListeners(key: string): boolean
  subscribe(key: string, listener: TopicListener<Event>): Subscription
}

/** @param maxWaiting events that may wait for one listener. Default 1,024 */
export function defineTopic<Event>(name: string, { maxWaiting = 1_024 } = {}): TopicToken<Event> {
  return Object.freeze({ kind: 'topic', name, maxWaiting })
}
