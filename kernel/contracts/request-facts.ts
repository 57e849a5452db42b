/**
 * What is known of a request from its head on: what error formats and request slots get, and how its client address is found.
 */
import type { Identity } from './auth.ts'
import { token } from './token.ts'
import type { HeaderList } from './transport.ts'

/** What is known of a request once its head has arrived. */
export interface RequestFacts {
  /** Upper case. */
  readonly method: string
  /** As received, without the query. */
  readonly path: string
  /** Without the question mark; empty when there is none. */
  readonly query: string
  /** Sent back as `x-request-id` and on to the worker. */
  readonly requestId: string
  /** `performance.now()` at arrival, milliseconds. */
  readonly startedAtMs: number
  /** Null on public routes, and until the access check has passed. */
  readonly identity: Identity | null
}

/** A plugin's own value on each request: an array index, not a property added to the context. */
export interface RequestSlot<T> {
  get(request: RequestFacts): T | undefined
  set(request: RequestFacts, value: T): void
}

export interface ClientAddressing {
  /** Header in which proxies send the client address; lower case. */
  readonly header: string
  /** @param peer remote address of the connection @param headers request headers, including every line of `header` */
  addressOf(peer: string, headers: HeaderList): string
}

/** Without it, the client address is that of the connection. */
export const ClientAddresses = token<ClientAddressing>('client-addresses')
