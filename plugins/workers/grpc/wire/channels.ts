/** Control calls of one thread, over one gRPC channel for each worker address. */
import { readFileSync } from 'node:fs'
import { Channel, type ChannelInterface, type ChannelOptions, credentials, Metadata } from '@grpc/grpc-js'
import type { WorkerEntry } from '#kernel'
import { engineUrl } from '#shared'
import type { GrpcConfig } from '../config.ts'
import { GrpcFault } from './grpc-status.ts'

const CANCELLED = 1

export interface ControlCall {
  readonly target: Pick<WorkerEntry, 'url' | 'apiKey'> & Partial<Pick<WorkerEntry, 'dataParallel'>>
  /** Path of the method. */
  readonly path: string
  readonly body: Buffer
  /** Infinity for none. */
  readonly timeoutMs: number
  onMessage(message: Buffer): void
  onStatus(code: number, details: string): void
}

export interface RunningCall {
  /** Requests the next message. */
  readNext(): void
  cancel(reason: string): void
}

/** Closes channels unused for this long, milliseconds. */
const UNUSED_MS = 600_000

interface Entry {
  readonly channel: ChannelInterface
  usedAtMs: number
}

export class Channels {
  readonly #byUrl = new Map<string, Entry>()
  readonly #config: GrpcConfig
  #authorities: Buffer | null = null
  #sweptAtMs = performance.now()

  constructor(config: GrpcConfig) {
    this.#config = config
  }

  /** Starts a call with the worker's key and requests the first message. @throws TypeError for an invalid URL */
  start(call: ControlCall): RunningCall {
    const { target, path, body, timeoutMs } = call
    const stream = this.#of(engineUrl(target)).createCall(path, Date.now() + timeoutMs, null, null, null)
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
  unary(call: Omit<ControlCall, 'onMessage' | 'onStatus'>, signal?: AbortSignal): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) return reject(signal.reason as Error)
      let response: Buffer | null = null
      const onAbort = () => {
        running.cancel('cancelled')
        reject(signal?.reason as Error)
      }
      const running = this.start({
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

  #of(url: string): ChannelInterface {
    const nowMs = performance.now()
    let entry = this.#byUrl.get(url)
    if (entry === undefined) {
      if (nowMs - this.#sweptAtMs > UNUSED_MS / 10) {
        this.#sweptAtMs = nowMs
        this.#closeUnused(nowMs - UNUSED_MS)
      }
      entry = { channel: this.#open(url), usedAtMs: nowMs }
      this.#byUrl.set(url, entry)
    }
    entry.usedAtMs = nowMs
    return entry.channel
  }

  close(): void {
    this.#closeUnused(Number.POSITIVE_INFINITY)
  }

  #closeUnused(sinceMs: number): void {
    for (const [url, { channel, usedAtMs }] of this.#byUrl) {
      if (usedAtMs > sinceMs) continue
      this.#byUrl.delete(url)
      channel.close()
    }
  }

  #open(url: string): ChannelInterface {
    const { protocol, hostname, port } = new URL(url)
    const isSecure = protocol === 'grpcs:'
    const isV6 = hostname.startsWith('[')
    const address = `${isV6 ? 'ipv6' : 'dns'}:${hostname}:${port || (isSecure ? '443' : '80')}`
    return new Channel(address, isSecure ? this.#secure() : credentials.createInsecure(), this.#options())
  }

  #secure() {
    const { caFile } = this.#config
    if (caFile !== null) this.#authorities ??= readFileSync(caFile)
    return credentials.createSsl(this.#authorities)
  }

  #options(): ChannelOptions {
    const { keepaliveMs, keepaliveTimeoutMs, maxMessageBytes, streamWindowBytes, maxReconnectWaitMs } =
      this.#config
    return {
      'grpc.keepalive_time_ms': keepaliveMs,
      'grpc.keepalive_timeout_ms': keepaliveTimeoutMs,
      'grpc.keepalive_permit_without_calls': 1,
      'grpc.max_receive_message_length': maxMessageBytes,
      'grpc.max_send_message_length': maxMessageBytes,
      'grpc-node.flow_control_window': streamWindowBytes,
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': maxReconnectWaitMs,
      // By default the new address of a worker that moved is found after 30 s.
      'grpc.dns_min_time_between_resolutions_ms': 1_000,
      // The gateway retries on another worker.
      'grpc.enable_retries': 0,
      'grpc.enable_http_proxy': 0,
      'grpc.enable_channelz': 0,
      'grpc.service_config_disable_resolution': 1,
      'grpc.use_local_subchannel_pool': 1,
      'grpc.primary_user_agent': 'weir',
    }
  }
}
