/** Typed names of services, commands and replicas, for modules that may not import each other. */

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

export function token<T>(name: string): Token<T> {
  return Object.freeze({ kind: 'service', name })
}

export function defineCommand<Payload, Result>(name: string): CommandToken<Payload, Result> {
  return Object.freeze({ kind: 'command', name })
}

export function defineReplica<T>(name: string, initial: T): ReplicaToken<T> {
  return Object.freeze({ kind: 'replica', name, initial })
}
