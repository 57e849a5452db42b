/** Builds the input of a call from a step of a case, with defaults for absent members and only what the module needs. */
import {
  ABI_VERSION,
  type AttachPoint,
  CREDENTIAL_HEADERS,
  type GuestInput,
  type HeaderPair,
  type ModuleNeeds,
  PHASE_OF_ATTACH_POINT,
  type PromptTextEntry,
} from '../../../wasm-sdk/abi.ts'
import type { CaseHeaders, CaseRequest, CaseResponse, CaseStep, CaseTool } from './module-case.ts'

const NO_BODY = new Uint8Array(0)
/** Default of `now_ms`. */
export const DEFAULT_NOW_MS = Date.UTC(2026, 0, 1)

export interface CallInput {
  readonly head: GuestInput
  readonly body: Uint8Array
}

/** Input of one call; for streams, the common part of all calls. */
export function toInput(step: CaseStep, needs: ModuleNeeds, nowMs: number): CallInput {
  const { body, ...members } = MEMBERS[step.on]?.(step, needs) ?? exchangeMembers(step, needs)
  return {
    head: { abi: ABI_VERSION, phase: PHASE_OF_ATTACH_POINT[step.on], now_ms: nowMs, ...members },
    body,
  }
}

/** Members of the head that depend on the attach point, and the body. */
type Members = Omit<GuestInput, 'abi' | 'phase' | 'now_ms'> & { readonly body: Uint8Array }

const MEMBERS: Readonly<Partial<Record<AttachPoint, (step: CaseStep, needs: ModuleNeeds) => Members>>> = {
  OnText: textMembers,
  OnPromptText: promptMembers,
  OnToolCall: toolMembers,
  OnPick: pickMembers,
}

function exchangeMembers(
  { on, request = {}, response = {}, error = {} }: CaseStep,
  needs: ModuleNeeds,
): Members {
  if (on === 'OnRequest') {
    const body = needs.request_body === true ? toBytes(request.body) : NO_BODY
    return { request: toRequest(request, needs), body }
  }
  const isStream = on === 'OnStreamEvent'
  const isError = on === 'OnError'
  return {
    request: toRequest(request, needs),
    response: toResponse(response, needs, isStream, isError ? 500 : 200),
    ...(isError && { error: toError(error, response) }),
    body: needs.response_body === true && !isStream ? toBytes(response.body) : NO_BODY,
  }
}

/** Input of the first call of a step, with the first event of a stream. */
export function toFirstInput(step: CaseStep, needs: ModuleNeeds): CallInput {
  const input = toInput(step, needs, DEFAULT_NOW_MS)
  const first = step.events?.[0]
  if (step.on !== 'OnStreamEvent' || first === undefined) return input
  const event = { index: 0, name: first.name ?? null, is_end: false }
  return { head: { ...input.head, event, state: '' }, body: toBytes(first.data) }
}

/** The whole text as its last piece; `runCase` sends the pieces one by one. */
function textMembers({ request = {}, text }: CaseStep, needs: ModuleNeeds): Members {
  return {
    text: {
      kind: text?.kind ?? 'text',
      choice: text?.choice ?? 0,
      call_id: text?.call?.id ?? null,
      call_name: text?.call?.name ?? null,
      is_last: true,
      held_bytes: 0,
    },
    request: toRequest(request, needs),
    body: toBytes(text?.pieces.join('') ?? ''),
  }
}

function promptMembers({ request = {}, prompt = [] }: CaseStep, needs: ModuleNeeds): Members {
  return {
    prompt: { texts: prompt.length, is_question: false },
    request: toRequest(request, needs),
    body: toBytes(promptEntries(prompt)),
  }
}

/** Texts without a place have that of a message. */
export function promptEntries(prompt: NonNullable<CaseStep['prompt']>): readonly PromptTextEntry[] {
  return prompt.map(({ role = 'user', place, text }, index) => ({
    role,
    place: place ?? `messages.${index}.content`,
    text,
  }))
}

const NO_REQUEST = { id: '', method: '', path: '', query: '', route: '', tenant: null, client_ip: '' }

/** A tool call has only the id and tenant of its request. */
function toolMembers({ request = {}, tool = {} }: CaseStep): Members {
  const { id = 'resp_test', tenant = null } = request
  return {
    request: { ...NO_REQUEST, id, tenant },
    tool: toTool(tool),
    body: toBytes(tool.arguments ?? {}),
  }
}

/** A pick has the headers of its request, and the body if the module needs it. */
function pickMembers({ request = {}, pick = {} }: CaseStep, needs: ModuleNeeds): Members {
  const body = toBytes(request.body)
  const headers = takeHeaders(request.headers ?? {}, needs.headers ?? true)
  const { model = 'm', leg = 'whole', candidates = [{}, {}] } = pick
  return {
    request: { ...NO_REQUEST, ...(headers !== null && { headers }) },
    pick: {
      model,
      leg,
      body_bytes: body.length,
      candidates: candidates.map((candidate, index) => ({
        url: `http://10.0.0.${index + 1}:8000`,
        labels: {},
        cost: 1,
        in_flight: 0,
        load: null,
        ...candidate,
      })),
    },
    body: needs.request_body === true ? body : NO_BODY,
  }
}

function toTool({
  kind = 'mcp',
  name = 'test',
  label = kind === 'mcp' ? 'tools' : null,
  server = 'tools',
  model = 'm',
}: CaseTool): NonNullable<GuestInput['tool']> {
  return { kind, name, label, server, model }
}

/** Strings unchanged, other values as JSON, nothing for undefined. */
export function toBytes(value: unknown): Uint8Array {
  if (value === undefined) return NO_BODY
  return new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value))
}

export function toPairs(headers: CaseHeaders): readonly HeaderPair[] {
  return Array.isArray(headers) ? headers : Object.entries(headers as Record<string, string>)
}

function toRequest(request: CaseRequest, needs: ModuleNeeds): GuestInput['request'] {
  const path = request.path ?? '/v1/chat/completions'
  const headers = takeHeaders(request.headers ?? {}, needs.headers ?? true, needs.credentials === true)
  return {
    id: request.id ?? 'chatcmpl-test',
    method: request.method ?? 'POST',
    path,
    query: request.query ?? '',
    route: request.route ?? path,
    tenant: request.tenant ?? null,
    client_ip: needs.client_ip === false ? '' : (request.client_ip ?? '127.0.0.1'),
    ...(headers === null ? {} : { headers }),
  }
}

function toResponse(
  response: CaseResponse,
  needs: ModuleNeeds,
  isStream: boolean,
  usualStatus: number,
): NonNullable<GuestInput['response']> {
  const headers = takeHeaders(response.headers ?? {}, needs.response_headers ?? true)
  return {
    status: response.status ?? usualStatus,
    ...(headers === null ? {} : { headers }),
    is_stream: response.is_stream ?? isStream,
  }
}

function toError(
  error: NonNullable<CaseStep['error']>,
  response: CaseResponse,
): NonNullable<GuestInput['error']> {
  return {
    code: error.code ?? 'internal_error',
    message: error.message ?? 'something went wrong',
    type: error.type ?? 'server_error',
    status: error.status ?? response.status ?? 500,
  }
}

function takeHeaders(
  headers: CaseHeaders,
  needs: boolean | readonly string[],
  showsCredentials = true,
): readonly HeaderPair[] | null {
  if (needs === false) return null
  const pairs = toPairs(headers)
  if (needs !== true) return pairs.filter(([name]) => needs.includes(name.toLowerCase()))
  return showsCredentials ? pairs : pairs.filter(([name]) => !CREDENTIAL_HEADERS.includes(name.toLowerCase()))
}
