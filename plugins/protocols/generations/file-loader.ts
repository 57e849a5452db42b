/**
 * Loads files that clients name by URL, for workers that cannot: where the operator allows it, within limits of bytes, time
 * and number. Each URL is loaded once per request.
 */
import {
  type GatewayError,
  type HeaderList,
  headerOf,
  type OutgoingHttp,
  type RelayContext,
  tenantOf,
  UpstreamFailure,
} from '#kernel'
import { checkHost, lookupFor, type ReachRules, readAllowedUrl, rulesFor, UnreachableByRule } from '#shared'
import type { FileUrlsConfig } from './config.ts'
import { fileNotLoaded, generationErrors } from './errors.ts'

const SECTION = 'plugins.generations.fileUrls'
const MAX_REDIRECTS = 3
const REDIRECTS = new Set([301, 302, 303, 307, 308])
const REQUEST_HEADERS: HeaderList = ['accept', '*/*', 'accept-encoding', 'identity']

export interface LoadedFile {
  /** Lower case, with its parameters. */
  readonly type: string
  readonly bytes: Buffer
}

interface FileResponse extends LoadedFile {
  readonly status: number
  readonly location: string | undefined
}

/** Why a file cannot be loaded; the message is for the client. */
class FileProblem extends Error {}

/** Files of one request. */
interface RequestFiles {
  readonly rules: ReachRules
  readonly byUrl: Map<string, Promise<LoadedFile>>
  leftBytes: number
  readonly untilMs: number
}

export class FileLoader {
  readonly #http: OutgoingHttp | null
  readonly #config: FileUrlsConfig
  readonly #requests = new WeakMap<RelayContext, RequestFiles>()
  /** Number of running requests to file servers by tenant. */
  readonly #running = new Map<string, number>()

  /** @param http null if no plugin provides it: then nothing is loaded */
  constructor(http: OutgoingHttp | null, config: FileUrlsConfig) {
    this.#http = http
    this.#config = config
  }

  isAllowed(ctx: RelayContext): boolean {
    return this.#http !== null && rulesFor(this.#config, tenantOf(ctx)).isAllowed
  }

  /** @throws file_not_loaded (400), too_many_files and too_many_body_bytes (429), body_memory_exhausted (503) */
  load(ctx: RelayContext, url: string): Promise<LoadedFile> {
    const files = this.#filesOf(ctx)
    let file = files.byUrl.get(url)
    if (file === undefined) {
      file = this.#load(ctx, files, url)
      files.byUrl.set(url, file)
    }
    return file
  }

  #filesOf(ctx: RelayContext): RequestFiles {
    let files = this.#requests.get(ctx)
    if (files === undefined) {
      const { maxBytes, timeoutMs } = this.#config
      const untilMs = performance.now() + timeoutMs
      const rules = rulesFor(this.#config, tenantOf(ctx))
      files = { rules, byUrl: new Map(), leftBytes: maxBytes, untilMs }
      this.#requests.set(ctx, files)
    }
    return files
  }

  async #load(ctx: RelayContext, files: RequestFiles, url: string): Promise<LoadedFile> {
    const tenant = tenantOf(ctx)
    const { maxPerRequest, maxConcurrentPerTenant } = this.#config
    const running = this.#running.get(tenant) ?? 0
    if (running >= maxConcurrentPerTenant) throw generationErrors.too_many_files(maxConcurrentPerTenant)
    this.#running.set(tenant, running + 1)
    try {
      if (files.byUrl.size >= maxPerRequest)
        throw new FileProblem(
          `the request names more than ${maxPerRequest} files by URL (${SECTION}.maxPerRequest)`,
        )
      return await this.#follow(ctx, files, readAllowedUrl(url, files.rules))
    } catch (error) {
      throw this.#toError(error, ctx, url)
    } finally {
      const left = (this.#running.get(tenant) ?? 1) - 1
      if (left > 0) this.#running.set(tenant, left)
      else this.#running.delete(tenant)
    }
  }

  async #follow(ctx: RelayContext, files: RequestFiles, url: URL): Promise<LoadedFile> {
    let at = url
    for (let hops = 0; hops <= MAX_REDIRECTS; hops++) {
      const { status, location, ...file } = await this.#get(ctx, files, at)
      if (!REDIRECTS.has(status) || location === undefined) {
        if (status !== 200) throw new FileProblem(`its server responded with status ${status}`)
        return file
      }
      if (!URL.canParse(location, at.href)) throw new FileProblem('its server redirects to an invalid URL')
      const next = new URL(location, at)
      if (at.protocol === 'https:' && next.protocol !== 'https:')
        throw new FileProblem('its server redirects to a URL without TLS')
      at = readAllowedUrl(next.href, files.rules)
    }
    throw new FileProblem(`its server redirects more than ${MAX_REDIRECTS} times`)
  }

  #get(ctx: RelayContext, files: RequestFiles, url: URL): Promise<FileResponse> {
    checkHost(url, files.rules)
    const peer = (this.#http as OutgoingHttp).connect({
      origin: url.origin,
      lookup: lookupFor(files.rules),
      keepAliveMs: 1,
      maxIdle: 0,
    })
    const leftMs = Math.max(1, Math.ceil(files.untilMs - performance.now()))
    const limits = { connectMs: leftMs, headMs: leftMs, firstTokenMs: 0, idleMs: 0, requestMs: leftMs }
    const path = url.pathname + url.search
    return new Promise<FileResponse>((resolve, reject) => {
      const chunks: Buffer[] = []
      let head: Omit<FileResponse, 'bytes'> = { status: 0, type: '', location: undefined }
      const stop = (error: Error) => {
        exchange.abort()
        reject(error)
      }
      const exchange = peer.send({ method: 'GET', path, headers: REQUEST_HEADERS, body: null }, limits, {
        onResponseStart: (status, headers, contentLength) => {
          const type = (headerOf(headers, 'content-type') ?? '').toLowerCase()
          head = { status, type, location: headerOf(headers, 'location') }
          const encoding = headerOf(headers, 'content-encoding')
          if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
            stop(new FileProblem('its server compresses it although the request excludes that'))
          else if (contentLength > files.leftBytes) stop(this.#tooLarge())
        },
        onResponseData: (chunk) => {
          files.leftBytes -= chunk.length
          const excess = files.leftBytes < 0 ? this.#tooLarge() : ctx.holdUntilEnd(chunk.length)
          if (excess !== null) stop(excess)
          else chunks.push(Buffer.from(chunk))
        },
        onResponseEnd: () => resolve({ ...head, bytes: Buffer.concat(chunks) }),
        onResponseError: reject,
      })
      ctx.onCancel(() => stop(new FileProblem('the client disconnected')))
    }).finally(() => peer.close())
  }

  #tooLarge(): FileProblem {
    return new FileProblem(
      `the files of the request have more than ${this.#config.maxBytes} bytes (${SECTION}.maxBytes)`,
    )
  }

  #toError(error: unknown, ctx: RelayContext, url: string): GatewayError {
    const rule = error instanceof UpstreamFailure ? error.cause : error
    if (rule instanceof UnreachableByRule) return fileNotLoaded(ctx, url, `${rule.message} (${SECTION})`)
    if (error instanceof FileProblem) return fileNotLoaded(ctx, url, error.message)
    if (!(error instanceof UpstreamFailure)) throw error
    const isLate = error.kind.endsWith('_timeout') || performance.now() >= this.#filesOf(ctx).untilMs
    const { timeoutMs } = this.#config
    return fileNotLoaded(
      ctx,
      url,
      isLate
        ? `its server did not send it within ${timeoutMs} ms (${SECTION}.timeoutMs)`
        : 'its server cannot be reached or broke the connection',
    )
  }
}
