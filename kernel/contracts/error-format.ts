/**
 * The error format contract: how the routes of one API render errors. Plugins may define their own; the built-in ones are in
 * `kernel/errors/error-formats.ts`.
 */
import type { TSchema } from 'typebox'
import type { GatewayError } from '../errors/gateway-error.ts'
import type { RequestFacts } from './request-facts.ts'

/** Encodes the error that ends a stream, in the format of the stream. */
export type ErrorEncoder = (error: GatewayError) => string | Buffer

/**
 * The functions may be called for any error, also before the access check and for a request without a body. If one throws
 * or returns an invalid response, this is logged and the error is sent in the `api` format.
 */
export interface ErrorFormat {
  /** Name of the schema in the OpenAPI document: letters and digits, one per shape, such as `ApiError`. */
  readonly name: string
  /** Schema of the error body. */
  readonly schema: TSchema
  /** Content type of the error body. Default `application/json`. */
  readonly contentType?: string
  /** The body of an error response; objects are sent as JSON. */
  body(error: GatewayError, request: RequestFacts): string | Buffer | object
  /**
   * Events that end a stream which failed after its first byte: whole events, each with its empty line, or an empty text.
   * An incomplete event has been ended before them.
   */
  lastEvents(error: GatewayError, request: RequestFacts): string
  /**
   * Close the connection after the events of `lastEvents`, and after an error event of a relayed worker, instead of completing
   * the response: for formats with clients that ignore such an event and take an orderly end for a complete answer. A client
   * that was slow gets an orderly end, since a closed connection loses what it has not taken. Default false.
   */
  readonly cutsFailedStreams?: boolean
  /** Status of an error response, 400 to 599. Default: that of the error's kind. */
  status?(error: GatewayError, request: RequestFacts): number
  /** [name, value, …] in addition to the error's own headers, names lower-case. */
  headers?(error: GatewayError, request: RequestFacts): readonly string[]
  /** Responses of `onRequest` hooks with an error status and no body get body and headers of this format. Default false. */
  readonly fillsRefusals?: boolean
}
