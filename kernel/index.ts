/** The public API of the kernel: everything that a plugin may import of it. */

// Schemas and their types.
export type { Static, TSchema } from 'typebox'
// Workers: entries, balancing, policies, calls, transports, control.
export type { Attempt, BreakerState, WorkerBalance, WorkerFigures } from './balance/worker-balance.ts'
// Plugins: manifest, host, configuration, hooks, tokens, background work.
export type { KernelConfig } from './config/kernel-config.ts'
export { integer, MAX_TIMER_MS, number } from './config/number-settings.ts'
// Requests: routes, contexts, responses, sockets, callers.
export * from './contracts/auth.ts'
export type * from './contracts/call.ts'
export type { ConfigFlag } from './contracts/config-flag.ts'
export type * from './contracts/detached.ts'
// Errors.
export type * from './contracts/error-format.ts'
export type * from './contracts/generation/called-tools.ts'
// Generations: requests and events between protocols and engines.
export * from './contracts/generation/embedding.ts'
export type * from './contracts/generation/generation.ts'
export type * from './contracts/generation/generation-request.ts'
export * from './contracts/generation/generations.ts'
export * from './contracts/generation/output-parser.ts'
export type * from './contracts/generation/prompt-text.ts'
export type * from './contracts/generation/text-stream.ts'
export * from './contracts/generation/tokenizer.ts'
export * from './contracts/generation/tool-call-guards.ts'
export * from './contracts/generation/tool-loop.ts'
export type * from './contracts/hook.ts'
export * from './contracts/kv-events.ts'
export type * from './contracts/log.ts'
// Metrics and traffic.
export * from './contracts/mesh.ts'
export * from './contracts/mesh-engine.ts'
export type * from './contracts/metric.ts'
export * from './contracts/model-targets.ts'
export * from './contracts/outgoing-http.ts'
export type * from './contracts/pair.ts'
export type * from './contracts/policy.ts'
export type * from './contracts/relay-context.ts'
export type * from './contracts/relay-options.ts'
export type * from './contracts/reload.ts'
export type * from './contracts/request.ts'
export { WARNING_HEADER } from './contracts/request.ts'
export type * from './contracts/request-facts.ts'
export * from './contracts/request-facts.ts'
export * from './contracts/request-steps.ts'
export * from './contracts/request-tracing.ts'
export type * from './contracts/response-format.ts'
export type * from './contracts/route.ts'
export type * from './contracts/socket.ts'
// Stores.
export * from './contracts/store/history.ts'
export * from './contracts/store/store.ts'
export * from './contracts/task-pool.ts'
export * from './contracts/token.ts'
export * from './contracts/traffic.ts'
export * from './contracts/transport.ts'
export { Type } from './contracts/type.ts'
export type * from './contracts/upstream.ts'
export * from './contracts/worker.ts'
export type * from './contracts/worker-control.ts'
export * from './contracts/worker-registry.ts'
export { defineErrors, type ErrorMaker } from './errors/define-errors.ts'
export { adminErrorFormat, apiErrorFormat, type RenderedError, renderError } from './errors/error-formats.ts'
export { type ErrorKind, type ErrorOptions, GatewayError, retryAfter } from './errors/gateway-error.ts'
export { messageOf } from './errors/message-of.ts'
export { queryError } from './http/http-errors.ts'
export { installedFile, moduleFile } from './installation.ts'
export { labelKey } from './observe/metrics-snapshot.ts'
export { Interval, turnNowMs } from './observe/timing.ts'
export * from './plugin/define-plugin.ts'
export { compileForeign } from './schema/foreign-validator.ts'
export { shortValue } from './schema/shown-value.ts'
export { defineValidator, type FieldProblem, problemText, type Validator } from './schema/validate.ts'
export { settlesWithin } from './threads/settles-within.ts'
export { collectCall } from './upstream/collected-call.ts'
export { checkModelChanges, mayUseModel } from './upstream/key-scope.ts'
export { editBody, editTexts } from './upstream/prompt-texts.ts'
export { isPlainEventStream } from './upstream/response-headers.ts'
export { workerControls } from './upstream/transports.ts'
export { addEstimate, StreamedText } from './upstream/unreported-usage.ts'
export { isLocalExhaustion, toUpstreamError, upstreamErrors } from './upstream/upstream-errors.ts'
export { mergeParameters, withModel, withQuery } from './upstream/worker-request.ts'
export { readVersion } from './version.ts'

// Wire: addresses, headers, event streams, JSON bytes.
export { parseBoundedJson, parseBoundedText } from './wire/bounded-json.ts'
export { canonicalAddress } from './wire/canonical-address.ts'
export { EventCounter, EventSplitter, hasCarriageReturn, nextEventEnd } from './wire/event-splitter.ts'
export {
  headerOf,
  isFieldValue,
  isToken,
  removeHeader,
  TOKEN_BYTE,
  toContentLength,
  VALUE_BYTE,
} from './wire/headers.ts'
export { isObject, type JsonObject } from './wire/is-object.ts'
export {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipSpace,
  skipString,
  skipValue,
  skipWord,
} from './wire/json-bytes.ts'
export { JsonScan } from './wire/json-scan.ts'
export { StreamTail } from './wire/stream-tail.ts'
export {
  breakdownOf,
  findUsage,
  jsonOfEvent,
  largestBreakdown,
  largestUsage,
  sumOfBreakdowns,
  sumOfUsage,
  usageOfBody,
  usageOfEvent,
  usageOfJson,
  valueAt,
} from './wire/token-usage.ts'
export { eachMember, type Member } from './wire/top-level-members.ts'
export { isContextOverflow, readRefusal, type WorkerMessage, workerMessage } from './wire/worker-message.ts'
