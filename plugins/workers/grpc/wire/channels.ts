/** gRPC channels of control calls on one thread, one for each worker address. */
import { readFileSync } from 'node:fs'
import { Channel, type ChannelInterface, type ChannelOptions, credentials } from '@grpc/grpc-js'
import type { WorkerEntry } from '#kernel'
import type { GrpcConfig } from '../config.ts'

/** The target of a channel. */
export type Destination = Pick<WorkerEntry, 'url'> & Partial<Pick<WorkerEntry, 'dataParallel'>>

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

  /** @throws TypeError for an invalid URL */
  of(destination: Destination): ChannelInterface {
    const url = baseUrlOf(destination)
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

export function baseUrlOf({ url, dataParallel }: Destination): string {
  return dataParallel?.baseUrl ?? url
}
