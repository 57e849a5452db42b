/** Typed names of services, commands, replicas and topics, for modules that may not import each other. */

/** Names a service that one plugin provides and others use. */
export interface Token<T> {
  readonly kind: 'service'
  readonly name: string
  /** Never set; carries the type. */
  readonly shape?: T
}

/** Names a request to control from any thread, and its result. */
export interface CommandToken<Payload, Result> {
  readonly kind: 'command'
  readonly name: string
  /** Never set; carries the types. */
  readonly shape?: [Payload, Result]
}

/** Names a value that control publishes and every thread reads. Values must survive `structuredClone`. */
export interface ReplicaToken<T> {
  readonly kind: 'replica'
  readonly name: string
  /** Value before the first publication. */
  readonly initial: T
}

/** Declares a service. @param name unique in the gateway, such as `tags` */
export function token<T>(name: string): Token<T> {
  return Object.freeze({ kind: 'service', name })
}

/** Declares a command. @param name unique in the gateway, such as `tags.set` */
export function defineCommand<Payload, Result>(name: string): CommandToken<Payload, Result> {
  return Object.freeze({ kind: 'command', name })
}

/** Declares a replica. @param name unique in the gateway @param initial value before the first publication */
export function defineReplica<T>(name: string, initial: T): ReplicaToken<T> {
  return Object.freeze({ kind: 'replica', name, initial })
}

/**
 * Topics: hints under a key, from any thread to all threads that subscribed to that key ("this log has grown", "stop this
 * work"). State belongs in a store or a replica, and requests that need a result are commands. Events must survive
 * `structuredClone` and must not change after they are published.
 */
export interface TopicToken<Event> {
  readonly kind: 'topic'
  readonly name: string
  /** Never set; carries the type. */
  readonly shape?: Event
}

/** Publishes and receives the events of one topic on this thread. */
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

/** Declares a topic. @param name unique in the gateway */
export function defineTopic<Event>(name: string): TopicToken<Event> {
  return Object.freeze({ kind: 'topic', name })
}
