/** Downloads tokenizers from engines: a stream of an archive that ends with its SHA-256 digest. */
import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import type { BundleLimits, BundleSource, WorkerEntry } from '#kernel'
import { decodeGetTokenizerChunk } from '../../../../proto/gen/common.ts'
import { findRuntime } from '../runtimes/runtime-table.ts'
import type { Channels, RunningCall } from '../wire/channels.ts'
import { GrpcFault } from '../wire/grpc-status.ts'
import { GRPC_MODE } from '../wire/grpc-transport.ts'

export class GrpcTokenizerBundles implements BundleSource {
  readonly #channels: Channels

  constructor(channels: Channels) {
    this.#channels = channels
  }

  covers(worker: WorkerEntry): boolean {
    return worker.connectionMode === GRPC_MODE && findRuntime(worker.runtimeType) !== undefined
  }

  async fetch(worker: WorkerEntry, file: string, { maxBytes, timeoutMs }: BundleLimits): Promise<void> {
    // Fails if the file exists.
    const out = await open(file, 'wx', 0o600)
    const digest = createHash('sha256')
    let claimed = ''
    let bytes = 0
    try {
      await this.#stream(worker, timeoutMs, async (message) => {
        if (claimed !== '') throw new Error('the archive continues after its digest')
        const { data, sha256 } = decodeGetTokenizerChunk(message)
        bytes += data.length
        if (bytes > maxBytes) throw new Error(`the archive exceeds ${maxBytes} bytes`)
        digest.update(data)
        claimed = sha256
        await out.writeFile(data)
      })
    } finally {
      await out.close()
    }
    if (claimed === '') throw new Error('the archive ended without a digest')
    if (digest.digest('hex') !== claimed.toLowerCase())
      throw new Error('the SHA-256 digest of the archive does not match')
  }

  /** Reads one message at a time: the next after `take` has finished. */
  #stream(worker: WorkerEntry, timeoutMs: number, take: (message: Buffer) => Promise<void>): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    let taken = Promise.resolve()
    const call: RunningCall = this.#channels.start({
      target: worker,
      path: findRuntime(worker.runtimeType)?.paths.GetTokenizer ?? '',
      body: Buffer.alloc(0),
      timeoutMs,
      onMessage(message) {
        taken = take(message)
        taken.then(
          () => call.readNext(),
          (error: unknown) => {
            call.cancel('rejected')
            reject(error as Error)
          },
        )
      },
      onStatus(code, details) {
        if (code === 0) taken.then(resolve, reject)
        else reject(new GrpcFault(code, details))
      },
    })
    return promise
  }
}
