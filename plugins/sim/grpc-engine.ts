/** The simulated engine over gRPC: generates prose as token ids of the sample tokenizer. */

import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { crc32 } from 'node:zlib'
import {
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js'
import { installedFile, type LoadedTokenizer, type TokenizerService } from '#kernel'
import { encodeGetTokenizerChunk } from '../../proto/gen/common.ts'
import type { SimConfig } from './config.ts'
import { writeProse } from './draft.ts'
import { GRPC_CODECS, type GrpcCodec } from './grpc-codecs.ts'
import { Random } from './random.ts'

const TOKENIZER = 'sim-sample'
const SAMPLE_SOURCE = 'weir:sample'
/** Timeout of loading the built-in tokenizer. */
const LOAD_TIMEOUT_MS = 20_000
const PROSE_TOKENS = 4_096

/** A method of a gRPC service, in encoded messages. Exceptions of `unary` with a `code` become the status of the call. */
export type RawMethod =
  | { readonly unary: (request: Buffer) => Buffer }
  | { readonly stream: (call: ServerWritableStream<Buffer, Buffer>) => void }

/** @param methods by path */
export function addRawService(server: Server, methods: ReadonlyMap<string, RawMethod>): void {
  const raw = (bytes: Buffer) => bytes
  const codec = {
    requestSerialize: raw,
    requestDeserialize: raw,
    responseSerialize: raw,
    responseDeserialize: raw,
  }
  const definitions: Record<string, MethodDefinition<Buffer, Buffer>> = {}
  const handlers: UntypedServiceImplementation = {}
  for (const [path, method] of methods) {
    definitions[path] = { path, requestStream: false, responseStream: 'stream' in method, ...codec }
    handlers[path] = 'stream' in method ? method.stream : unary(method.unary)
  }
  server.addService(definitions, handlers)
}

function unary(answer: (request: Buffer) => Buffer) {
  return (call: ServerUnaryCall<Buffer, Buffer>, reply: sendUnaryData<Buffer>) => {
    try {
      reply(null, answer(call.request))
    } catch (error) {
      reply(error as Error)
    }
  }
}

export class GrpcEngine {
  readonly #config: SimConfig
  readonly #codec: GrpcCodec
  readonly #server = new Server()
  readonly #running = new Map<string, () => void>()
  #prose: readonly number[] = []

  constructor(config: SimConfig) {
    this.#config = config
    this.#codec = GRPC_CODECS[config.runtime]
  }

  /** @returns its port */
  async listen(tokenizers: TokenizerService, host: string, port: number): Promise<number> {
    const tokenizer = await loadSample(tokenizers)
    const prose = writeProse(new Random(this.#config.seed), PROSE_TOKENS).join('')
    this.#prose = [...(await tokenizer.encode(prose))]
    this.#serve()
    return new Promise((resolve, reject) => {
      this.#server.bindAsync(`${host}:${port}`, ServerCredentials.createInsecure(), (error, bound) => {
        if (error === null) resolve(bound)
        else reject(error)
      })
    })
  }

  close(): void {
    for (const stop of this.#running.values()) stop()
    this.#server.forceShutdown()
  }

  #serve(): void {
    const { paths } = this.#codec
    addRawService(
      this.#server,
      new Map<string, RawMethod>([
        [paths.Generate, { stream: (call) => this.#generate(call) }],
        [paths.HealthCheck, { unary: () => this.#codec.health() }],
        [paths.GetModelInfo, { unary: () => this.#codec.modelInfo(this.#config.models[0], SAMPLE_SOURCE) }],
        [paths.GetServerInfo, { unary: () => Buffer.alloc(0) }],
        [paths.Abort, { unary: (body) => this.#abort(body) }],
        [paths.GetTokenizer, { stream: serveTokenizer }],
      ]),
    )
  }

  #abort(body: Buffer): Buffer {
    for (const id of this.#codec.readAbort(body)) this.#running.get(id)?.()
    return Buffer.alloc(0)
  }

  #generate(call: ServerWritableStream<Buffer, Buffer>): void {
    const { id, promptIds, maxTokens, isStream, ignoresEos } = this.#codec.readGenerate(call.request)
    const { tokens, ttftMs, itlMs, role } = this.#config
    const natural = role === 'prefill' ? 1 : ignoresEos ? maxTokens : tokens
    const count = Math.max(1, Math.min(maxTokens || tokens, natural || tokens))
    const offset = promptIds.reduce((sum, one) => (sum * 31 + one) >>> 0, 7) % this.#prose.length
    const ids = Array.from({ length: count }, (_, at) => this.#prose[(offset + at) % this.#prose.length])
    const counts = { promptTokens: promptIds.length, finishReason: count < natural ? 'length' : 'stop' }
    let sent = 0
    let timer: NodeJS.Timeout | null = null
    const stop = () => {
      if (timer !== null) clearTimeout(timer)
      this.#running.delete(id)
      call.end()
    }
    const step = () => {
      if (isStream && sent < count) {
        call.write(this.#codec.chunk(ids.slice(sent, sent + 1), sent + 1, counts))
        sent++
        timer = setTimeout(step, itlMs)
        return
      }
      call.write(this.#codec.complete(ids, isStream, counts))
      stop()
    }
    this.#running.set(id, stop)
    call.on('cancelled', stop)
    timer = setTimeout(step, isStream ? ttftMs : ttftMs + count * itlMs)
  }
}

/** GetTokenizer, for runtimes that do not report the path of their tokenizer. */
function serveTokenizer(call: ServerWritableStream<Buffer, Buffer>): void {
  for (const piece of sampleBundle()) call.write(piece)
  call.end()
}

async function loadSample(tokenizers: TokenizerService): Promise<LoadedTokenizer> {
  await tokenizers.ensure({ name: TOKENIZER, source: SAMPLE_SOURCE })
  for (const endsAtMs = performance.now() + LOAD_TIMEOUT_MS; ; ) {
    const found = tokenizers.find(TOKENIZER)
    if (found !== undefined) return found
    const state = (await tokenizers.status(TOKENIZER))?.state
    if (state === 'failed' || performance.now() > endsAtMs)
      throw new Error(`tokenizer ${SAMPLE_SOURCE} was not loaded within ${LOAD_TIMEOUT_MS} ms`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

const FOLDER = fileURLToPath(installedFile('plugins/models/tokenizers/sample/'))
const PIECE_BYTES = 65_536

/** The sample tokenizer as a zip archive in pieces; the last one has its SHA-256 digest. */
function sampleBundle(): readonly Buffer[] {
  const names = readdirSync(FOLDER).filter((name) => /\.(?:json|jinja)$/.test(name))
  const archive = storedZip(names.map((name) => [name, readFileSync(FOLDER + name)]))
  const sha256 = createHash('sha256').update(archive).digest('hex')
  const pieces: Buffer[] = []
  for (let at = 0; at < archive.length; at += PIECE_BYTES) {
    const isLast = at + PIECE_BYTES >= archive.length
    const data = archive.subarray(at, at + PIECE_BYTES)
    pieces.push(encodeGetTokenizerChunk({ data, ...(isLast && { sha256 }) }))
  }
  return pieces
}

/** An uncompressed zip archive. */
function storedZip(files: readonly (readonly [name: string, bytes: Buffer])[]): Buffer {
  const bodies: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const [name, bytes] of files) {
    const title = Buffer.from(name)
    const facts = Buffer.alloc(26)
    facts.writeUInt16LE(20, 0)
    facts.writeUInt32LE(crc32(bytes), 10)
    facts.writeUInt32LE(bytes.length, 14)
    facts.writeUInt32LE(bytes.length, 18)
    facts.writeUInt16LE(title.length, 22)
    const place = Buffer.alloc(14)
    place.writeUInt32LE(offset, 10)
    directory.push(Buffer.from('PK\x01\x02\x14\x00', 'latin1'), facts, place, title)
    const body = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), facts, title, bytes])
    bodies.push(body)
    offset += body.length
  }
  const list = Buffer.concat(directory)
  const end = Buffer.alloc(18)
  end.writeUInt16LE(files.length, 4)
  end.writeUInt16LE(files.length, 6)
  end.writeUInt32LE(list.length, 8)
  end.writeUInt32LE(offset, 12)
  return Buffer.concat([...bodies, list, Buffer.from('PK\x05\x06', 'latin1'), end])
}
