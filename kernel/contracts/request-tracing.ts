/** Spans of work inside a request, for plugins that do more than pass it on. */
import type { RequestContext } from './request.ts'
import { token } from './token.ts'

/** Values that a span keeps; the exporter truncates long texts. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>

/** Work under way. */
export interface WorkSpan {
  set(attributes: SpanAttributes): void
  /** @param error short reason; null when it went well */
  end(error: string | null): void
}

export interface RequestTracingService {
  /**
   * Begins a span under the request's own. What is still open at the end of the request is closed with it.
   * @param name such as `execute_tool search`; attributes follow the conventions of OpenTelemetry, and never hold bodies,
   * arguments or keys
   * @returns null when this request is not traced
   */
  begin(ctx: RequestContext, name: string, attributes: SpanAttributes): WorkSpan | null
}

export const RequestTracing = token<RequestTracingService>('request-tracing')
