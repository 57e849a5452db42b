/** Errors of gRPC workers: engine statuses, and requests that an engine does not support. */
import { defineErrors, type ErrorMaker, type GatewayError } from '#kernel'

const said = (text: string) => (text === '' ? 'the engine gave no reason' : text.slice(0, 1_000))
const refused = { source: 'worker', text: said } as const
const failed = { source: 'worker', retry: 'before-first-byte', text: said } as const

export const grpcErrors = defineErrors('grpc', {
  engine_invalid_argument: { ...refused, kind: 'bad_request' },
  engine_unauthenticated: { ...refused, kind: 'unauthorized' },
  engine_permission_denied: { ...refused, kind: 'forbidden' },
  engine_not_found: { ...refused, kind: 'not_found' },
  engine_conflict: { ...refused, kind: 'conflict' },
  engine_exhausted: { ...failed, kind: 'rate_limited' },
  engine_internal: { ...failed, kind: 'internal' },
  engine_unimplemented: { ...refused, kind: 'not_implemented' },
  engine_unavailable: { ...failed, kind: 'unavailable' },
  engine_deadline_exceeded: { ...failed, kind: 'gateway_timeout' },
  tokenizer_missing: {
    kind: 'internal',
    source: 'gateway',
    text: (model: string) =>
      `no tokenizer is loaded for model ${model}; set the worker label tokenizer_path or register a tokenizer`,
  },
  tokenizer_loading: {
    kind: 'unavailable',
    source: 'gateway',
    text: (model: string) => `the tokenizer of model ${model} is being loaded; retry later`,
  },
  engine_lacks_parameter: {
    kind: 'bad_request',
    source: 'client',
    text: (runtime: string, what: string) => `${runtime} engines do not support ${what}`,
  },
  multimodal_not_supported: {
    kind: 'bad_request',
    source: 'client',
    text: (type: string) =>
      `the messages have a part of type '${type.slice(0, 64)}', but gRPC workers support text only`,
  },
  audio_output_not_supported: {
    kind: 'bad_request',
    source: 'client',
    text: () => "field 'return_audio' must not be true: gRPC workers return text only",
  },
  unsupported_output_modality: {
    kind: 'bad_request',
    source: 'client',
    text: (modality: string) =>
      `field 'modalities' must hold "text" only for gRPC workers (got ${JSON.stringify(modality.slice(0, 64))})`,
  },
  not_supported_in_harmony: {
    kind: 'bad_request',
    source: 'client',
    text: (what: string) => `Harmony models support chat only, not ${what}`,
  },
  engine_runtime_unknown: {
    kind: 'not_implemented',
    source: 'gateway',
    text: (runtime: string) => `engines of type ${runtime} are not supported over gRPC`,
  },
  unsupported_backend: {
    kind: 'not_implemented',
    source: 'gateway',
    text: (runtime: string) => `${runtime} engines do not support embeddings over gRPC`,
  },
  engine_unreachable: {
    kind: 'unavailable',
    source: 'worker',
    text: (url: string, why: string) => `worker ${url} is unreachable: ${why}`,
  },
  engine_ranks_unknown: {
    kind: 'bad_gateway',
    source: 'worker',
    text: (url: string) => `worker ${url} does not report a valid number of data-parallel ranks`,
  },
  engine_message_unreadable: {
    kind: 'bad_gateway',
    source: 'worker',
    retry: 'before-first-byte',
    text: (why: string) => `the engine's message could not be read: ${why}`,
  },
})

/** By gRPC status code. */
const BY_STATUS: ReadonlyMap<number, ErrorMaker<[string]>> = new Map([
  [1, grpcErrors.engine_invalid_argument],
  [2, grpcErrors.engine_internal],
  [3, grpcErrors.engine_invalid_argument],
  [4, grpcErrors.engine_deadline_exceeded],
  [5, grpcErrors.engine_not_found],
  [6, grpcErrors.engine_conflict],
  [7, grpcErrors.engine_permission_denied],
  [8, grpcErrors.engine_exhausted],
  [9, grpcErrors.engine_invalid_argument],
  [10, grpcErrors.engine_conflict],
  [11, grpcErrors.engine_invalid_argument],
  [12, grpcErrors.engine_unimplemented],
  [13, grpcErrors.engine_internal],
  [14, grpcErrors.engine_unavailable],
  [15, grpcErrors.engine_internal],
  [16, grpcErrors.engine_unauthenticated],
])

/** @param isOwn whether `details` come from the engine; those of the library contain addresses and are only logged */
export function toStatusError(code: number, details: string, isOwn: boolean): GatewayError {
  const make = BY_STATUS.get(code) ?? grpcErrors.engine_internal
  return make(isOwn ? details : 'the engine could not be reached')
}
