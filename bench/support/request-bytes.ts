/** Requests of the load clients; the same bytes for every subject. */
import { BENCH_KEY } from './subject.ts'

export interface ChatRequest {
  readonly stream: boolean
  /** Length of the whole JSON body, in bytes. */
  readonly bodyBytes: number
  /** `bulk` selects the long stream of the worker. */
  readonly user?: string
  readonly tools?: readonly unknown[]
}

/** Body of a chat request. */
export function chatBody({ stream, bodyBytes, user, tools }: ChatRequest): string {
  const build = (content: string) =>
    JSON.stringify({ model: 'bench', stream, user, tools, messages: [{ role: 'user', content }] })
  const padding = Math.max(0, bodyBytes - build('').length)
  return build('How are you today? '.repeat(Math.ceil(padding / 19)).slice(0, padding))
}

/** Body of a Responses request. */
export function responsesBody({
  stream,
  store,
  bodyBytes,
  tools,
}: ChatRequest & { readonly store: boolean; readonly tools?: readonly object[] }): string {
  const build = (input: string) => JSON.stringify({ model: 'bench', stream, store, input, tools })
  const padding = Math.max(0, bodyBytes - build('').length)
  return build('How are you today? '.repeat(Math.ceil(padding / 19)).slice(0, padding))
}

/** Body of a streamed Messages request of about that size. @param user `bulk` selects the long stream of the worker */
export function messageBody(bodyBytes: number, user?: string): string {
  const content = 'How are you today? '
    .repeat(Math.ceil(bodyBytes / 19))
    .slice(0, Math.max(1, bodyBytes - 100))
  return JSON.stringify({
    model: 'bench',
    user,
    stream: true,
    max_tokens: 64,
    messages: [{ role: 'user', content }],
  })
}

export const REQUEST_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'application/json',
  accept: '*/*',
  'user-agent': 'weir-bench/1',
  authorization: `Bearer ${BENCH_KEY}`,
}

/** API keys of that many tenants. */
export function tenantKeys(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `bench-key-of-tenant-${index}`)
}

/** Encodes head and body. */
export function requestBytes(
  port: number,
  body: string,
  { path = '/v1/chat/completions', key = BENCH_KEY } = {},
): Buffer {
  const lines = { ...REQUEST_HEADERS, authorization: `Bearer ${key}` }
  const headers = Object.entries(lines).map(([name, value]) => `${name}: ${value}\r\n`)
  const head = `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n${headers.join('')}`
  return Buffer.from(`${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
}
