/** Messages between gateways: sent together, and dropped where they cannot be sent at once. */
import { type ChannelMessage, type Logger, MESH_INTAKE, type MeshChannel, type MeshEngine } from '#kernel'

/** Messages that wait for the engine, over all channels; more are dropped. */
const MAX_WAITING = 1_024

interface ChannelsParts {
  readonly engine: Pick<MeshEngine, 'send'>
  /** Of this gateway. */
  readonly name: string
  /** False while there is no connection, or no other gateway can be there. */
  readonly isOpen: () => boolean
  readonly log: Logger
}

export class Channels {
  readonly #parts: ChannelsParts
  readonly #listeners = new Map<string, ((message: Buffer, from: string) => void)[]>()
  #waiting: { channel: string; message: Buffer }[] = []
  #isSending = false
  readonly counts = { sent: 0, received: 0, dropped: 0 }

  constructor(parts: ChannelsParts) {
    this.#parts = parts
  }

  get names(): readonly string[] {
    return [...this.#listeners.keys()]
  }

  open(name: string): MeshChannel {
    const listeners = this.#listeners.get(name) ?? []
    this.#listeners.set(name, listeners)
    return {
      send: (message) => this.#queue(name, message),
      onMessage: (listener) => void listeners.push(listener),
    }
  }

  /** Passes a message on to its listeners, unless this gateway has sent it. */
  deliver({ channel, from, message }: ChannelMessage): void {
    if (from === this.#parts.name || message.length > MESH_INTAKE.messageBytes) return
    this.counts.received++
    for (const listener of this.#listeners.get(channel) ?? []) {
      try {
        listener(message, from)
      } catch (err) {
        this.#parts.log.warn({ err, from, channel }, 'message of a gateway could not be read')
      }
    }
  }

  /** Messages of one turn of the event loop are sent together, and while a batch is on its way the next ones wait. */
  #queue(channel: string, message: Buffer): void {
    if (!this.#parts.isOpen()) return
    if (message.length > MESH_INTAKE.messageBytes || this.#waiting.length >= MAX_WAITING) {
      this.counts.dropped++
      return
    }
    this.#waiting.push({ channel, message })
    if (this.#isSending) return
    this.#isSending = true
    setImmediate(() => void this.#flush())
  }

  async #flush(): Promise<void> {
    const { engine, name } = this.#parts
    while (this.#waiting.length > 0) {
      const batch = this.#waiting
      this.#waiting = []
      try {
        await engine.send(name, batch)
        this.counts.sent += batch.length
      } catch {
        this.counts.dropped += batch.length
      }
    }
    this.#isSending = false
  }
}
