/** The connections of one thread: a channel for each worker's address, which reconnects by itself. */
import { readFileSync } from 'node:fs'
import { Channel, type ChannelInterface, type ChannelOptions, credentials } from '@grpc/grpc-js'
import type { WorkerEntry } from '#kernel'
import type { GrpcConfig } from '../config.ts'

/** Whom a channel leads to. */
export type Destination = Pick<WorkerEntry, 'url'> & Partial<Pick<WorkerEntry, 'dataParallel'>>

/** Channels that nobody used for this long are closed, in milliseconds. */
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

  /** @throws TypeError when the URL cannot be read */
  of(destination: Destination): ChannelInterface {
    const url = baseUrlOf(destination)
    const nowMs = performance.now()
    let entry = this.#byUrl.get(url)
    if (entry === undefined) {
      if (nowMs - this.#sweptAtMs > UNUSED_MS / 10) this.#sweep(nowMs)
      entry = { channel: this.#open(url), usedAtMs: nowMs }
      this.#byUrl.set(url, entry)
    }
    entry.usedAtMs = nowMs
    return entry.channel
  }

  /** Closes those that lead to nobody of these; calls under way go on. */
  keepOnly(workers: readonly Destination[]): void {
    const wanted = new Set(workers.map(baseUrlOf))
    for (const [url, { channel }] of this.#byUrl) {
      if (wanted.has(url)) continue
      this.#byUrl.delete(url)
      channel.close()
    }
  }

  close(): void {
    this.keepOnly([])
  }

  #sweep(nowMs: number): void {
    this.#sweptAtMs = nowMs
    for (const [url, { channel, usedAtMs }] of this.#byUrl) {
      if (nowMs - usedAtMs < UNUSED_MS) continue
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
      // The gateway tries again itself, on another worker.
      'grpc.enable_retries': 0,
      'grpc.enable_http_proxy': 0,
      'grpc.enable_channelz': 0,
      'grpc.service_config_disable_resolution': 1,
      'grpc.use_local_subchannel_pool': 1,
      'grpc.primary_user_agent': 'weir',
    }
  }
}

export function baseUrlOf({ url, dataParallel }: Destination): string {
  return dataParallel?.baseUrl ?? url
}
