/**
 * Topics: hints under a key, from any thread to all threads that subscribed to that key ("this log has grown", "stop this
 * work"). State belongs in a store or a replica, and requests that need a result are commands.
 */

/** Names a topic. Events must survive `structuredClone` and must not change after they are published. */
export interface TopicToken<Event> {
  readonly kind: 'topic'
  readonly name: string
  /** Never set; carries the type. */
  readonly shape?: Event
}

export interface Topic<Event> {
  /**
   * Delivers the event to the subscriptions of this thread before it returns, and to those of other threads later, in the
   * order of publication. Without a subscription it costs one look per thread into shared memory. There is no back-pressure
   * and no acknowledgement: a thread that dies loses its events, and the publisher does not learn of it.
   *
   * @returns false if no thread listens to the key; true is wrong for about one key in 4,096 per subscription
   * @throws DataCloneError if another thread listens and the event cannot be cloned
   */
  publish(key: string, event: Event): boolean
  /**
   * Calls the listener for every event that any thread publishes from now on. Exceptions of the listener are logged.
   *
   * @returns ends the subscription at once; safe to call twice
   */
  subscribe(key: string, listener: (event: Event) => void): () => void
}

export function defineTopic<Event>(name: string): TopicToken<Event> {
  return Object.freeze({ kind: 'topic', name })
}
