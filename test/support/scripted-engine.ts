/** A scripted gRPC worker: tests define every response, and every request is recorded. */
import { Server, ServerCredentials, type ServerWritableStream } from '@grpc/grpc-js'
import { addRawService, type RawMethod } from '../../plugins/sim/grpc-engine.ts'
import * as common from '../../proto/gen/common.ts'
import * as mlx from '../../proto/gen/mlx-engine.ts'
import * as sglang from '../../proto/gen/sglang-scheduler.ts'
import * as tokenspeed from '../../proto/gen/tokenspeed-scheduler.ts'
import * as trtllm from '../../proto/gen/trtllm-service.ts'
import * as vllm from '../../proto/gen/vllm-engine.ts'
import type { Certificate } from './certificates.ts'

export const ENGINE_NAMES = ['sglang', 'vllm', 'trtllm', 'mlx', 'tokenspeed'] as const
export type EngineName = (typeof ENGINE_NAMES)[number]

const CODECS = {
  sglang: { ...sglang, paths: sglang.SglangScheduler },
  vllm: { ...vllm, paths: vllm.VllmEngine },
  trtllm: { ...trtllm, paths: trtllm.TrtllmService },
  mlx: { ...mlx, paths: mlx.MlxEngine },
  tokenspeed: { ...tokenspeed, paths: tokenspeed.TokenSpeedScheduler },
} as const satisfies Record<EngineName, unknown>

/** A message of the stream, a promise to wait for, a hang, or the status that ends it. */
export type Step =
  | { readonly chunk: Record<string, unknown> }
  | { readonly complete: Record<string, unknown> }
  | { readonly bytes: Buffer }
  | { readonly waitFor: Promise<unknown> }
  | { readonly status: number; readonly details?: string }
  | { readonly hang: true }

export interface GenerateCall {
  readonly request: Record<string, unknown>
  readonly bytes: Buffer
  readonly metadata: ReadonlyMap<string, string>
  isCancelled: boolean
  readonly cancelled: Promise<void>
}

export interface ScriptedEngineOptions {
  readonly runtime?: EngineName
  readonly model?: string
  /** Additional members of GetModelInfo. */
  readonly modelInfo?: Record<string, unknown>
  /** GetModelInfo fails. */
  readonly hidesModel?: boolean
  readonly serverInfo?: Record<string, unknown>
  readonly loads?: readonly Record<string, unknown>[]
  readonly health?: Record<string, unknown>
  readonly embedding?: (ids: readonly number[]) => readonly number[]
  readonly port?: number
  /** Serves TLS. */
  readonly tls?: Pick<Certificate, 'cert' | 'key'>
  /** Events of SubscribeKvEvents, by the number of the subscription from 1; without it the method is unimplemented. */
  readonly kvEvents?: (from: bigint, nth: number) => Promise<readonly KvStep[]>
  /** Messages of GetTokenizer. */
  readonly tokenizer?: readonly { readonly data?: Buffer; readonly sha256?: string }[]
}

/** A batch, or the status that ends the stream; without a status it stays open. */
export type KvStep = common.KvEventBatchFields | { readonly status: number }

type Script = (call: GenerateCall) => readonly Step[]
const NO_ANSWER: Script = () => []

export class ScriptedEngine {
  readonly calls: GenerateCall[] = []
  /** Ids of aborted requests, in order. */
  readonly aborted: string[] = []
  readonly abortBytes: Buffer[] = []
  readonly embedded: (readonly number[])[] = []
  readonly kvRequests: common.SubscribeKvEventsRequest[] = []
  script: Script = NO_ANSWER
  /** Ids of the requests of earlier tests. */
  readonly #earlier = new Set<string>()
  url = ''
  port = 0
  readonly runtime: EngineName
  readonly #server = new Server({ 'grpc.max_receive_message_length': -1, 'grpc.max_send_message_length': -1 })
  readonly #options: ScriptedEngineOptions

  constructor(options: ScriptedEngineOptions) {
    this.#options = options
    this.runtime = options.runtime ?? 'sglang'
  }

  async start(): Promise<this> {
    const { kvEvents, tokenizer, loads, embedding } = this.#options
    const paths = CODECS[this.runtime].paths as Record<string, string | undefined>
    const methods = new Map<string, RawMethod>()
    const add = (path: string | undefined, method: RawMethod) =>
      path !== undefined && methods.set(path, method)
    const unary = (path: string | undefined, answer: (body: Buffer) => Buffer) => add(path, { unary: answer })
    add(paths.Generate, { stream: (call) => void this.#generate(call) })
    unary(paths.HealthCheck, () =>
      this.#encode('HealthCheckResponse', this.#options.health ?? { healthy: true, status: 'OK' }),
    )
    unary(paths.GetModelInfo, () => {
      if (this.#options.hidesModel === true)
        throw Object.assign(new Error('hidden'), { code: 13, details: 'the model is a secret' })
      return this.#encode('GetModelInfoResponse', this.#modelInfo())
    })
    unary(paths.GetServerInfo, () => this.#encode('GetServerInfoResponse', this.#options.serverInfo ?? {}))
    unary(paths.Abort, (body) => this.#abort(body))
    if (loads !== undefined) unary(paths.GetLoads, () => this.#encode('GetLoadsResponse', { loads }))
    unary(paths.FlushCache, () => common.encodeFlushCacheResponse({ success: true }))
    unary(paths.StartProfile, () => common.encodeProfileResponse({ success: true }))
    unary(paths.StopProfile, () => common.encodeProfileResponse({ success: true }))
    if (kvEvents !== undefined)
      add(paths.SubscribeKvEvents, { stream: (call) => void this.#sendKvEvents(call, kvEvents) })
    if (tokenizer !== undefined)
      add(paths.GetTokenizer, {
        stream: (call) => {
          for (const chunk of tokenizer) call.write(common.encodeGetTokenizerChunk(chunk))
          call.end()
        },
      })
    if (embedding !== undefined) unary(paths.Embed, (body) => this.#embed(body))
    addRawService(this.#server, methods)
    this.port = await new Promise<number>((resolve, reject) =>
      this.#server.bindAsync(
        `127.0.0.1:${this.#options.port ?? 0}`,
        credentialsOf(this.#options.tls),
        (error, port) => (error === null ? resolve(port) : reject(error)),
      ),
    )
    this.url = `grpc${this.#options.tls === undefined ? '' : 's'}://127.0.0.1:${this.port}`
    return this
  }

  /** Sends the ids in one chunk per list, then the final message of this engine. */
  answer(chunks: readonly (readonly number[])[], end: Record<string, unknown> = {}): this {
    this.script = ({ request }) => this.steps(chunks, end, request)
    return this
  }

  steps(
    chunks: readonly (readonly number[])[],
    end: Record<string, unknown>,
    request: Record<string, unknown>,
    index = 0,
  ): Step[] {
    const isStream = (request.stream ?? request.streaming) === true
    const all = chunks.flat()
    const last = chunks.at(-1) ?? []
    const isTrt = this.runtime === 'trtllm'
    const kept = !isStream || isTrt ? all : this.runtime === 'mlx' ? [] : last
    const counts = { promptTokens: 7, cachedTokens: 0 }
    const place = isTrt
      ? { sequenceIndex: index }
      : { index: this.runtime === 'sglang' && !isStream ? 0 : index }
    let soFar = 0
    const steps: Step[] = []
    if (isStream)
      for (const tokenIds of chunks) {
        soFar += tokenIds.length
        const completionTokens = this.runtime === 'vllm' ? tokenIds.length : soFar
        steps.push({ chunk: { ...counts, ...place, tokenIds, completionTokens } })
      }
    const completionTokens = this.runtime === 'vllm' && isStream ? last.length : all.length
    const ids = isTrt ? { outputTokenIds: kept } : { outputIds: kept }
    steps.push({ complete: { ...counts, ...place, ...ids, completionTokens, finishReason: 'stop', ...end } })
    return steps
  }

  /** Forgets the script and the requests, for the next test. An abort of an earlier request may arrive later. */
  reset(): void {
    for (const { request } of this.calls) this.#earlier.add(request.requestId as string)
    for (const list of [this.calls, this.aborted, this.abortBytes, this.embedded]) list.length = 0
    this.script = NO_ANSWER
  }

  async received(nth = 1): Promise<GenerateCall> {
    const endsAt = performance.now() + 30_000
    while (this.calls.length < nth) {
      if (performance.now() > endsAt) throw new Error(`no call ${nth}`)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    return this.calls[nth - 1]
  }

  async close(): Promise<void> {
    this.#server.forceShutdown()
  }

  async #sendKvEvents(
    stream: ServerWritableStream<Buffer, Buffer>,
    steps: NonNullable<ScriptedEngineOptions['kvEvents']>,
  ): Promise<void> {
    const request = common.decodeSubscribeKvEventsRequest(stream.request)
    this.kvRequests.push(request)
    for (const step of await steps(request.startSequenceNumber, this.kvRequests.length)) {
      if ('status' in step) stream.emit('error', { code: step.status, details: '' })
      else stream.write(common.encodeKvEventBatch(step))
    }
  }

  #encode(message: string, fields: Record<string, unknown>): Buffer {
    const codec = CODECS[this.runtime] as unknown as Record<string, (fields: unknown) => Buffer>
    return codec[`encode${message}`](fields)
  }

  #decode(message: string, bytes: Buffer): Record<string, never> {
    const codec = CODECS[this.runtime] as unknown as Record<string, (bytes: Buffer) => Record<string, never>>
    return codec[`decode${message}`](bytes)
  }

  #modelInfo(): Record<string, unknown> {
    const { model = 'test-model', modelInfo } = this.#options
    const name = this.runtime === 'trtllm' ? { modelId: model } : { servedModelName: model }
    return { ...name, tokenizerPath: 'weir:sample', isGeneration: true, ...modelInfo }
  }

  #abort(body: Buffer): Buffer {
    const { requestId, requestIds } = this.#decode('AbortRequest', body) as {
      requestId?: string
      requestIds?: string[]
    }
    const ids = (requestIds ?? [requestId ?? '']).filter((id) => !this.#earlier.has(id))
    if (ids.length > 0) this.abortBytes.push(body)
    this.aborted.push(...ids)
    return Buffer.alloc(0)
  }

  #embed(body: Buffer): Buffer {
    const { tokenized } = this.#decode('EmbedRequest', body) as unknown as {
      tokenized: { inputIds: number[] }
    }
    this.embedded.push(tokenized.inputIds)
    const embedding = this.#options.embedding?.(tokenized.inputIds) ?? []
    return this.#encode('EmbedResponse', {
      embedding,
      promptTokens: tokenized.inputIds.length,
      embeddingDim: embedding.length,
    })
  }

  async #generate(stream: ServerWritableStream<Buffer, Buffer>): Promise<void> {
    const cancelled = Promise.withResolvers<void>()
    const call: GenerateCall = {
      request: this.#decode('GenerateRequest', stream.request),
      bytes: stream.request,
      metadata: new Map(
        Object.entries(stream.metadata.getMap()).map(([name, value]) => [name, String(value)]),
      ),
      isCancelled: false,
      cancelled: cancelled.promise,
    }
    stream.on('cancelled', () => {
      call.isCancelled = true
      cancelled.resolve()
    })
    this.calls.push(call)
    for (const step of this.script(call)) {
      if (call.isCancelled) return
      if ('hang' in step) return
      if ('waitFor' in step) await step.waitFor
      else if ('status' in step) {
        stream.emit('error', { code: step.status, details: step.details ?? '' })
        return
      } else stream.write('bytes' in step ? step.bytes : this.#encode('GenerateResponse', step))
    }
    stream.end()
  }
}

function credentialsOf(tls: ScriptedEngineOptions['tls']): ServerCredentials {
  if (tls === undefined) return ServerCredentials.createInsecure()
  return ServerCredentials.createSsl(null, [{ private_key: tls.key, cert_chain: tls.cert }])
}

export function startScriptedEngine(options: ScriptedEngineOptions = {}): Promise<ScriptedEngine> {
  return new ScriptedEngine(options).start()
}
