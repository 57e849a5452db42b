/** Requests to the control plane of the gateway that served the page. */
import { connectionLost, refusals } from './connection.ts'

/** Long enough for a slow store; a gateway that does not respond in this time counts as unreachable. Milliseconds. */
const TIMEOUT_MS = 30_000

export class ApiError extends Error {
  /** 0 if the gateway could not be reached. */
  readonly status: number
  /** JSON of the response; null without one. */
  readonly body: unknown
  /** Of an error body of the control plane; null without one. */
  readonly code: string | null

  constructor(status: number, message: string, body: unknown = null) {
    super(message)
    this.status = status
    this.body = body
    this.code = textOf(body, 'code')
  }
}

/**
 * Sends a request with the cookie of the session.
 *
 * @param body JSON value; undefined sends none
 * @param credential sent instead of the cookie
 * @returns the JSON of the response, or its text if it is none
 * @throws ApiError
 */
export async function call<T>(method: string, path: string, body?: unknown, credential?: string): Promise<T> {
  const response = await send(method, path, body, credential)
  return resultOf(response.status, await response.text())
}

/**
 * Sends a file with the cookie of the session, as `fetch` reports no progress.
 *
 * @param onProgress receives the sent part, 0 to 1
 * @throws ApiError
 */
export function upload<T>(path: string, file: File, onProgress: (sent: number) => void): Promise<T> {
  const request = new XMLHttpRequest()
  request.open('POST', path)
  request.setRequestHeader('x-weir-console', '1')
  request.upload.addEventListener('progress', ({ loaded, total }) => onProgress(loaded / total))
  return new Promise<T>((resolve, reject) => {
    request.addEventListener('load', () => {
      try {
        resolve(resultOf(request.status, request.responseText))
      } catch (error) {
        reject(error)
      }
    })
    request.addEventListener('error', () => reject(unreachable('the upload was interrupted')))
    request.send(file)
  })
}

/** @throws ApiError for the status of an error */
function resultOf<T>(status: number, text: string): T {
  const value = parsed(text)
  if (status < 300) return (value ?? text) as T
  if (status === 401) refusals.set(refusals.value + 1)
  const message = textOf(value, 'message') ?? (text || `the gateway sent status ${status}`)
  throw new ApiError(status, message, value)
}

function unreachable(reason: string): ApiError {
  connectionLost()
  return new ApiError(0, `the gateway does not respond (${reason})`)
}

async function send(
  method: string,
  path: string,
  body: unknown,
  credential: string | undefined,
): Promise<Response> {
  const headers: Record<string, string> = { accept: 'application/json' }
  if (method !== 'GET') headers['x-weir-console'] = '1'
  if (credential !== undefined) headers.authorization = `Bearer ${credential}`
  if (body !== undefined) headers['content-type'] = 'application/json'
  try {
    return await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
  } catch (error) {
    throw unreachable((error as Error).message)
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** A text of an error body of the control plane. */
function textOf(body: unknown, name: 'message' | 'code'): string | null {
  const { error } = (body ?? {}) as { error?: { message?: unknown; code?: unknown } | string }
  const text =
    typeof error === 'string' && name === 'message'
      ? error
      : (error as { message?: unknown; code?: unknown } | undefined)?.[name]
  return typeof text === 'string' ? text : null
}

/** A path with those parameters that have a value. */
export function withQuery(path: string, query: Readonly<Record<string, string | number | null>>): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== null && value !== '') params.set(name, String(value))
  const text = params.toString()
  return text === '' ? path : `${path}?${text}`
}
