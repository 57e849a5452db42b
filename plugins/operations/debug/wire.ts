/** Payloads of GET /debug/requests and /debug/requests/{request_id}. */
import { type Static, Type } from '#kernel'

const Milliseconds = (description: string) => Type.Number({ description: `${description}, in milliseconds.` })
const Nullable = <T extends Parameters<typeof Type.Union>[0][number]>(type: T) =>
  Type.Union([type, Type.Null()])

export const CandidateView = Type.Object({
  worker_id: Type.String(),
  url: Type.String(),
  in_flight: Type.Integer({ description: 'Requests in flight when the worker was picked.' }),
  load_score: Type.Number({
    description:
      'In flight with this request, weighed by the recent latency: what load policies compare; lower is preferred.',
  }),
  breaker: Type.String({ description: 'closed, open or half_open.' }),
  is_available: Type.Boolean(),
  is_suspect: Type.Boolean({
    description: 'It fails many of its recent requests, or has stalled: others are preferred.',
  }),
})

export const AttemptView = Type.Object({
  number: Type.Integer({ description: '1-based.' }),
  worker_id: Type.String(),
  worker_url: Type.String(),
  policy: Type.String({
    description: 'Policy that picked the worker, `hook`, or `fixed` if the route specifies the worker.',
  }),
  explanation: Nullable(Type.String({ description: 'Explanation of the policy.' })),
  candidates: Nullable(Type.Array(CandidateView, { description: 'The first 16 candidates.' })),
  start_ms: Milliseconds('From the arrival of the request to the start of this attempt'),
  first_byte_ms: Nullable(Milliseconds('From the start of this attempt to the worker’s first byte')),
  duration_ms: Milliseconds('From the start of this attempt to its end'),
  status: Nullable(Type.Integer({ description: 'Status of the upstream response; null if there was none.' })),
  failure: Nullable(Type.String({ description: 'Kind of failure, such as `connect` or `reset`.' })),
  error: Nullable(
    Type.String({
      description: 'Status and beginning of the body of a failed attempt, without credentials.',
    }),
  ),
  outcome: Type.String({ description: 'success, failure, retried or cancelled.' }),
})

export const StepView = Type.Object({
  kind: Type.Enum(['queue', 'module', 'tool'], {
    description: 'Wait for admission, a call of a middleware module, or of a tool that the gateway runs.',
  }),
  name: Type.String(),
  start_ms: Milliseconds('From the arrival of the request'),
  duration_ms: Milliseconds('Duration of all calls'),
  calls: Type.Integer({
    description: 'The calls of a module for the events or the text of a stream are one step.',
  }),
  error: Nullable(Type.String({ description: 'Short reason; null when it went well.' })),
})
export type StepView = Static<typeof StepView>

export const RequestView = Type.Object({
  request_id: Type.String(),
  method: Type.String(),
  path: Type.String(),
  route: Type.String(),
  tenant: Type.String(),
  model: Nullable(Type.String({ description: 'Model name in the request.' })),
  status: Type.Integer({ description: 'Status sent to the client; 499 if it disconnected before.' }),
  error_code: Nullable(Type.String()),
  is_aborted: Type.Boolean({
    description: 'Whether the client disconnected before the end of the response.',
  }),
  started_at: Type.String({ description: 'ISO 8601.' }),
  first_byte_ms: Nullable(Milliseconds('From arrival to the first byte to the client')),
  duration_ms: Milliseconds('From arrival to the end'),
  bytes_out: Type.Integer(),
  modules: Type.Array(Type.String(), { description: 'Middleware modules that were called.' }),
  thread: Type.Integer({ description: 'Data thread that served the request.' }),
  steps: Type.Array(StepView, { description: 'The first 64, in order of their ends.' }),
  attempts: Type.Array(AttemptView),
})

/** One past request. */
export type RequestView = Static<typeof RequestView>
export type AttemptView = Static<typeof AttemptView>

/** Latest first; client-supplied ids may repeat. */
export const RequestsResponse = Type.Object({ requests: Type.Array(RequestView) })
export type RequestsResponse = Static<typeof RequestsResponse>

export const RequestPageResponse = Type.Object({
  requests: Type.Array(RequestView, { description: 'Latest first.' }),
  has_more: Type.Boolean(),
  last_id: Nullable(Type.String({ description: 'Cursor of the next page; null for an empty page.' })),
})
export type RequestPageResponse = Static<typeof RequestPageResponse>
