/**
 * Outgoing HTTP of modules, on control: only to origins that both the operator and the registration list, within limits
 * of size, time and number. Redirects are returned to the module, not followed.
 */
import {
  type IncomingMessage,
  Agent as PlainAgent,
  type RequestOptions,
  request as requestPlain,
} from 'node:http'
import { request as requestSecure, Agent as SecureAgent } from 'node:https'
import { isPrivateAddress, isWithin, pinnedLookup, readNetworks } from '#shared'
import type { FetchedHead, HeaderPair } from '../../../wasm-sdk/abi.ts'
import type { WasmConfig } from '../config.ts'
import { toWire } from '../hooks/header-edits.ts'
import { type FetchRequest, type FetchResult, failedFetch } from './fetch-order.ts'
import { covers, type OriginPattern, originOf, readOrigin } from './origin-pattern.ts'

/** Below the five seconds after which many servers close an idle connection. */
const IDLE_SOCKET_MS = 4_000
const MAX_HEADER_BYTES = 16_384

type Problem = NonNullable<FetchedHead['error']>

/** The host resolves to a private address outside the networks that the operator listed. */
class PrivateAddress extends Error {
  constructor() {
    super('the host has a private address')
    this.name = 'PrivateAddress'
  }
}

export class OutgoingHttp {
  readonly #config: WasmConfig['fetch']
  readonly #origins: readonly OriginPattern[]
  readonly #plain: PlainAgent
  readonly #secure: SecureAgent
  /** Abort functions of pending fetches by key. */
  readonly #open = new Map<string, (problem: Problem) => void>()
  /** Number of pending fetches by module. */
  readonly #counts = new Map<string, number>()

  /** @param config whose origins and networks are valid */
  constructor(config: WasmConfig['fetch']) {
    this.#config = config
    this.#origins = config.origins.flatMap((text) => readOrigin(text) ?? [])
    const networks = readNetworks(config.privateNetworks)
    const lookup = pinnedLookup((address) => {
      if (isPrivateAddress(address) && !isWithin(networks, address)) throw new PrivateAddress()
    })
    const shared = { keepAlive: true, timeout: IDLE_SOCKET_MS, lookup }
    this.#plain = new PlainAgent(shared)
    this.#secure = new SecureAgent({ ...shared, rejectUnauthorized: true })
  }

  /** Returns why a module may not be registered for these origins; null if it may. */
  problemOf(allowedHosts: readonly string[]): string | null {
    for (const text of allowedHosts) {
      const wanted = readOrigin(text)
      if (wanted === null) return `allowed_hosts: ${text} is not an origin such as https://api.example.com`
      if (!this.#origins.some((origin) => covers(origin, wanted)))
        return `allowed_hosts: plugins.wasm.fetch.origins does not list ${text}`
    }
    return null
  }

  /** Never rejects: errors are part of the result. */
  async fetch(request: FetchRequest): Promise<FetchResult> {
    const { module, order } = request
    if (!URL.canParse(order.url)) return failedFetch('invalid')
    const url = new URL(order.url)
    const problem = this.#problem(url, request)
    if (problem !== null) return failedFetch(problem)
    this.#counts.set(module, (this.#counts.get(module) ?? 0) + 1)
    try {
      return await this.#send(url, request)
    } finally {
      const left = (this.#counts.get(module) ?? 1) - 1
      if (left > 0) this.#counts.set(module, left)
      else this.#counts.delete(module)
    }
  }

  /** Cancels a pending fetch. */
  drop(key: string): void {
    this.#open.get(key)?.('timeout')
  }

  /** Closes all connections. */
  close(): void {
    for (const abort of this.#open.values()) abort('unreachable')
    this.#plain.destroy()
    this.#secure.destroy()
  }

  #problem(url: URL, { module, allowedHosts, order }: FetchRequest): Problem | null {
    if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'invalid'
    if (url.username !== '' || url.password !== '') return 'invalid'
    const origin = originOf(url)
    const isListed = (pattern: OriginPattern | null) => pattern !== null && covers(pattern, origin)
    if (!this.#origins.some(isListed) || !allowedHosts.some((text) => isListed(readOrigin(text))))
      return 'not_allowed'
    if (!this.#config.methods.includes(order.method)) return 'not_allowed'
    if (order.body.length > this.#config.maxRequestBytes) return 'too_large'
    return (this.#counts.get(module) ?? 0) >= this.#config.maxOpen ? 'busy' : null
  }

  #send(url: URL, { key, order, timeoutMs }: FetchRequest): Promise<FetchResult> {
    const isSecure = url.protocol === 'https:'
    const options: RequestOptions = {
      method: order.method,
      headers: headersOf(order.headers, order.body.length),
      agent: isSecure ? this.#secure : this.#plain,
      maxHeaderSize: MAX_HEADER_BYTES,
    }
    return new Promise((resolve) => {
      const request = isSecure ? requestSecure(url, options) : requestPlain(url, options)
      const end = (result: FetchResult) => {
        clearTimeout(timer)
        this.#open.delete(key)
        resolve(result)
      }
      const abort = (problem: Problem) => {
        end(failedFetch(problem))
        request.destroy()
      }
      const timer = setTimeout(() => abort('timeout'), timeoutMs)
      this.#open.set(key, abort)
      request.on('error', (error) =>
        end(failedFetch(error instanceof PrivateAddress ? 'not_allowed' : 'unreachable')),
      )
      request.on('response', (message) => this.#read(message, end, abort))
      request.end(order.body.length > 0 ? order.body : undefined)
    })
  }

  #read(
    message: IncomingMessage,
    end: (result: FetchResult) => void,
    abort: (problem: Problem) => void,
  ): void {
    const chunks: Buffer[] = []
    let bytes = 0
    message.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > this.#config.maxResponseBytes) abort('too_large')
      else chunks.push(chunk)
    })
    message.on('end', () => end(toResult(message, chunks)))
    message.on('error', () => abort('unreachable'))
    message.on('close', () => abort('unreachable'))
  }
}

/** Repeated names become lists; content-length is set by the gateway. */
function headersOf(flat: readonly string[], bodyBytes: number): Record<string, string | string[]> {
  const headers = new Map<string, string[]>([['accept-encoding', ['identity']]])
  for (let i = 0; i < flat.length; i += 2)
    headers.set(flat[i], [...(headers.get(flat[i]) ?? []), toWire(flat[i + 1])])
  if (bodyBytes > 0) headers.set('content-length', [String(bodyBytes)])
  return Object.fromEntries(
    [...headers].map(([name, values]) => [name, values.length === 1 ? values[0] : values]),
  )
}

function toResult(message: IncomingMessage, chunks: readonly Buffer[]): FetchResult {
  const body = Uint8Array.from(Buffer.concat(chunks))
  const headers: HeaderPair[] = []
  for (let i = 0; i < message.rawHeaders.length; i += 2)
    headers.push([message.rawHeaders[i].toLowerCase(), message.rawHeaders[i + 1]])
  return { head: { error: null, status: message.statusCode ?? 0, headers, body_bytes: body.length }, body }
}
