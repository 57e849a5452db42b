/** Control calls to an engine. */
import { type ChannelInterface, Metadata } from '@grpc/grpc-js'
import type { WorkerTarget } from '#kernel'
import { GrpcFault } from './grpc-status.ts'

const CANCELLED = 1

export interface EngineCall {
  readonly channel: ChannelInterface
  /** Path of the method. */
  readonly path: string
  readonly body: Buffer
  /** Infinity for none. */
  readonly timeoutMs: number
  readonly target: Pick<WorkerTarget, 'apiKey'>
  onMessage(message: Buffer): void
  onStatus(code: number, details: string): void
}

export interface RunningCall {
  /** Requests the next message. */
  readNext(): void
  cancel(reason: string): void
}

/** Starts a call with the worker's key and requests the first message. */
export function startCall(call: EngineCall): RunningCall {
  const { channel, path, body, timeoutMs, target } = call
  const stream = channel.createCall(path, Date.now() + timeoutMs, null, null, null)
  const metadata = new Metadata()
  if (target.apiKey !== null) metadata.set('authorization', `Bearer ${target.apiKey}`)
  stream.start(metadata, {
    onReceiveMetadata() {},
    onReceiveMessage: (message: Buffer) => call.onMessage(message),
    onReceiveStatus: ({ code, details }) => call.onStatus(code, details),
  })
  stream.sendMessageWithContext({}, body)
  stream.halfClose()
  stream.startRead()
  return {
    readNext: () => stream.startRead(),
    cancel: (reason) => stream.cancelWithStatus(CANCELLED, reason),
  }
}

/** Makes a unary call. @throws GrpcFault if the status is not OK or no message arrives; the signal's reason */
export function callUnary(
  call: Omit<EngineCall, 'onMessage' | 'onStatus'>,
  signal?: AbortSignal,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason as Error)
    let response: Buffer | null = null
    const onAbort = () => {
      running.cancel('cancelled')
      reject(signal?.reason as Error)
    }
    const running = startCall({
      ...call,
      onMessage(message) {
        response = message
        running.readNext()
      },
      onStatus(code, details) {
        signal?.removeEventListener('abort', onAbort)
        if (code !== 0) reject(new GrpcFault(code, details))
        else if (response === null) reject(new GrpcFault(13, 'the engine sent no message'))
        else resolve(response)
      },
    })
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}
