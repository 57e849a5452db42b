/** A unary call to an engine. */
import type { ChannelInterface } from '@grpc/grpc-js'
import type { HeaderList } from '#kernel'
import { GrpcFault } from './grpc-status.ts'
import { toMetadata } from './metadata.ts'

const CANCELLED = 1

export interface UnaryOptions {
  readonly timeoutMs: number
  readonly headers?: HeaderList
  readonly signal?: AbortSignal
}

/** @throws GrpcFault if the status is not OK or no message arrives; the signal's reason */
export function callUnary(
  channel: ChannelInterface,
  path: string,
  body: Buffer,
  { timeoutMs, headers = [], signal }: UnaryOptions,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let answer: Buffer | null = null
    const call = channel.createCall(path, Date.now() + timeoutMs, null, null, null)
    const onAbort = () => {
      call.cancelWithStatus(CANCELLED, 'cancelled')
      reject(signal?.reason as Error)
    }
    if (signal?.aborted === true) return onAbort()
    signal?.addEventListener('abort', onAbort, { once: true })
    call.start(toMetadata(headers), {
      onReceiveMetadata() {},
      onReceiveMessage(message: Buffer) {
        answer = message
        call.startRead()
      },
      onReceiveStatus({ code, details }) {
        signal?.removeEventListener('abort', onAbort)
        if (code !== 0) reject(new GrpcFault(code, details))
        else if (answer === null) reject(new GrpcFault(13, 'the engine sent no message'))
        else resolve(answer)
      },
    })
    call.sendMessageWithContext({}, body)
    call.halfClose()
    call.startRead()
  })
}
