/**
 * The error format contract: how the routes of one front show what went wrong. A value of the route, so that a plugin
 * brings its own. The built-in ones are in `kernel/errors/error-formats.ts`.
 */
import type { TSchema } from 'typebox'
import type { GatewayError } from '../errors/gateway-error.ts'
import type { RequestFacts } from './request-facts.ts'

/** Encodes the error that ends a stream, in the format of the stream. */
export type ErrorEncoder = (error: GatewayError) => string | Buffer

/**
 * Both functions may be called for any error of any module, also before the access check and for a request that has no
 * body. What a format throws, or a reply that cannot be sent, is logged and shown in the `api` format instead.
 */
export interface ErrorFormat {
  /** Name of the schema in the OpenAPI document: letters and digits, one per shape, such as `ApiError`. */
  readonly name: string
  /** Of the error body. */
  readonly schema: TSchema
  /** Of the error body. Default `application/json`. */
  readonly contentType?: string
  /** The body of an error reply; anything but text and bytes is sent as JSON. */
  body(error: GatewayError, request: RequestFacts): string | Buffer | object
  /**
   * What ends an event stream that broke after its first byte: whole events, each with its empty line; empty to say
   * nothing. The event under way has been ended before it.
   */
  lastEvents(error: GatewayError, request: RequestFacts): string
  /** Status of an error reply, 400 to 599. Default: that of the error's kind. */
  status?(error: GatewayError, request: RequestFacts): number
  /** [name, value, …] beside the error's own headers, names lower-case. */
  headers?(error: GatewayError, request: RequestFacts): readonly string[]
  /** Refusals of `onRequest` hooks without a body get one of this format, and its headers. Default: sent as they are. */
  readonly fillsRefusals?: boolean
}
