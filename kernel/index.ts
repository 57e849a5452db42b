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
export type * from './contracts/background.ts'
export type * from './contracts/call.ts'
export * from './contracts/client-address.ts'
export type { ConfigFlag } from './contracts/config-flag.ts'
export type * from './contracts/detached.ts'
// Errors.
export type * from './contracts/error-format.ts'
// Generations: requests and events between protocols and engines.
export * from './contracts/generation/embedding.ts'
export type * from './contracts/generation/generation.ts'
export type * from './contracts/generation/generation-request.ts'
export * from './contracts/generation/generations.ts'
export * from './contracts/generation/output-parser.ts'
export type * from './contracts/generation/text-stream.ts'
export * from './contracts/generation/tokenizer.ts'
export * from './contracts/generation/tool-loop.ts'
export type * from './contracts/hook.ts'
export * from './contracts/kv-events.ts'
export type * from './contracts/log.ts'
// Metrics and traffic.
export * from './contracts/mesh.ts'
export * from './contracts/mesh-engine.ts'
export type {
  MessageSocketDefinition,
  Socket,
  SocketLimits,
  SocketMessage,
} from './contracts/message-socket.ts'
export type * from './contracts/metric.ts'
export type * from './contracts/metric-snapshot.ts'
export type * from './contracts/mode-control.ts'
export * from './contracts/model-targets.ts'
export * from './contracts/outgoing-http.ts'
export type * from './contracts/pair.ts'
export type * from './contracts/policy.ts'
export type * from './contracts/relay-context.ts'
export type * from './contracts/relay-options.ts'
export type * from './contracts/reload.ts'
export type * from './contracts/request.ts'
export type * from './contracts/request-facts.ts'
export * from './contracts/request-tracing.ts'
export type * from './contracts/route.ts'
export type * from './contracts/route-facts.ts'
export type * from './contracts/socket.ts'
// Stores.
export * from './contracts/store/history.ts'
export * from './contracts/store/store.ts'
export * from './contracts/task-pool.ts'
export * from './contracts/token.ts'
export * from './contracts/topic.ts'
export * from './contracts/traffic.ts'
export * from './contracts/transport.ts'
export { Type } from './contracts/type.ts'
export type * from './contracts/upstream.ts'
export type * from './contracts/usage-estimator.ts'
export * from './contracts/worker.ts'
export type * from './contracts/worker-control.ts'
export * from './contracts/worker-registry.ts'
export type { ErrorMaker } from './errors/define-errors.ts'
export { defineErrors } from './errors/define-errors.ts'
export { adminErrorFormat, apiErrorFormat } from './errors/error-formats.ts'
export type { ErrorKind, ErrorOptions } from './errors/gateway-error.ts'
export { GatewayError, retryAfter } from './errors/gateway-error.ts'
export { messageOf } from './errors/message-of.ts'
export { type RenderedError, renderError } from './errors/render-error.ts'
export { labelKey } from './observe/metrics-snapshot.ts'
export type * from './plugin/define-plugin.ts'
export { definePlugin } from './plugin/define-plugin.ts'
export type { FieldProblem, Validator } from './schema/validate.ts'
export { defineValidator } from './schema/validate.ts'
export { settlesWithin } from './threads/settles-within.ts'
export { collectCall } from './upstream/collected-call.ts'
export { mayUseModel } from './upstream/key-scope.ts'
export { isLocalExhaustion } from './upstream/local-exhaustion.ts'
export { isPlainEventStream } from './upstream/response-headers.ts'
export { StreamedText } from './upstream/streamed-text.ts'
export { usageOfBody } from './upstream/token-usage.ts'
export { addEstimate } from './upstream/unreported-usage.ts'
export { toUpstreamError, upstreamErrors } from './upstream/upstream-errors.ts'
export { workerControls } from './upstream/worker-controls.ts'
export { mergeParameters, withModel } from './upstream/worker-request.ts'
export { readVersion } from './version.ts'

// Wire: addresses, headers, event streams, JSON bytes.
export { parseBoundedJson, parseBoundedText } from './wire/bounded-json.ts'
export { canonicalAddress } from './wire/canonical-address.ts'
export { isContextOverflow } from './wire/context-overflow.ts'
export { EventCounter, nextEventEnd } from './wire/event-borders.ts'
export { EventSplitter } from './wire/event-splitter.ts'
export { headerOf, removeHeader } from './wire/header-list.ts'
export { isFieldValue, isToken, TOKEN_BYTE, VALUE_BYTE } from './wire/header-syntax.ts'
export { isObject, type JsonObject } from './wire/is-object.ts'
export {
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
} from './wire/json-bytes.ts'
export { JsonScan } from './wire/json-scan.ts'
export { StreamTail } from './wire/stream-tail.ts'
export { type WorkerMessage, workerMessage } from './wire/worker-message.ts'
