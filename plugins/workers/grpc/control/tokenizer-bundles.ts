/** The tokenizers that engines serve: one stream of an archive, whose digest comes with its end. */
import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import type { BundleLimits, BundleSource, WorkerEntry } from '#kernel'
import { decodeGetTokenizerChunk } from '../../../../proto/gen/common.ts'
import { MlxEngine } from '../../../../proto/gen/mlx-engine.ts'
import { SglangScheduler } from '../../../../proto/gen/sglang-scheduler.ts'
import { TokenSpeedScheduler } from '../../../../proto/gen/tokenspeed-scheduler.ts'
import { TrtllmService } from '../../../../proto/gen/trtllm-service.ts'
import { VllmEngine } from '../../../../proto/gen/vllm-engine.ts'
import type { Channels } from '../wire/channels.ts'
import { GrpcFault } from '../wire/grpc-fault.ts'
import { GRPC_MODE } from '../wire/grpc-transport.ts'
import { toMetadata } from '../wire/metadata.ts'

const CANCELLED = 1
const PATHS: ReadonlyMap<string, string> = new Map([
  ['mlx', MlxEngine.GetTokenizer],
  ['sglang', SglangScheduler.GetTokenizer],
  ['tokenspeed', TokenSpeedScheduler.GetTokenizer],
  ['trtllm', TrtllmService.GetTokenizer],
  ['vllm', VllmEngine.GetTokenizer],
])

export class GrpcTokenizerBundles implements BundleSource {
  readonly #channels: Channels

  constructor(channels: Channels) {
    this.#channels = channels
  }

  covers(worker: WorkerEntry): boolean {
    return worker.connectionMode === GRPC_MODE && PATHS.has(worker.runtimeType)
  }

  async fetch(worker: WorkerEntry, file: string, { maxBytes, timeoutMs }: BundleLimits): Promise<void> {
    // A file that is there already is not ours.
    const out = await open(file, 'wx', 0o600)
    const digest = createHash('sha256')
    let claimed = ''
    let bytes = 0
    try {
      await this.#stream(worker, timeoutMs, async (message) => {
        if (claimed !== '') throw new Error('the archive goes on after its digest')
        const { data, sha256 } = decodeGetTokenizerChunk(message)
        bytes += data.length
        if (bytes > maxBytes) throw new Error(`the archive is larger than ${maxBytes} bytes`)
        digest.update(data)
        claimed = sha256
        await out.writeFile(data)
      })
    } finally {
      await out.close()
    }
    if (claimed === '') throw new Error('the archive came without its digest')
    if (digest.digest('hex') !== claimed.toLowerCase())
      throw new Error('the archive is not the one that its digest tells of')
  }

  /** One message at a time: the next is asked for when `take` is done with this one. */
  #stream(worker: WorkerEntry, timeoutMs: number, take: (message: Buffer) => Promise<void>): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const path = PATHS.get(worker.runtimeType) ?? ''
    const call = this.#channels.of(worker).createCall(path, Date.now() + timeoutMs, null, null, null)
    const key = worker.apiKey === null ? [] : ['authorization', `Bearer ${worker.apiKey}`]
    let taken = Promise.resolve()
    call.start(toMetadata(key), {
      onReceiveMetadata() {},
      onReceiveMessage(message: Buffer) {
        taken = take(message)
        taken.then(
          () => call.startRead(),
          (error: unknown) => {
            call.cancelWithStatus(CANCELLED, 'not wanted')
            reject(error as Error)
          },
        )
      },
      onReceiveStatus({ code, details }) {
        if (code === 0) taken.then(resolve, reject)
        else reject(new GrpcFault(code, details))
      },
    })
    call.sendMessageWithContext({}, Buffer.alloc(0))
    call.halfClose()
    call.startRead()
    return promise
  }
}
