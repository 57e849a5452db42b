/** Load on the gateways of a mesh: changes of records at a fixed rate, and requests of clients. Counts what fails. */
import { setTimeout as pause } from 'node:timers/promises'
import { ROOT } from '../api/mesh/mesh-fleet.ts'

const TICK_MS = 20
/** Changes of one key follow each other. */
const KEYS_PER_GATEWAY = 64
/** Between two chats of one client. */
const CHAT_PAUSE_MS = 20
const KEEP_ALIVE = { connection: 'keep-alive' }
const OPERATOR = { ...ROOT, ...KEEP_ALIVE }
const CLIENT = { authorization: 'Bearer api-key', ...KEEP_ALIVE }

/** A gateway in this process or another. */
export interface LoadedGateway {
  readonly name: string
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply>
}

interface Reply {
  readonly status: number
  readonly text: string
}

interface WrittenKey {
  readonly gateway: LoadedGateway
  readonly key: string
  /** Last value that was sent: values grow. */
  sent: number
  /** Last value that was acknowledged. */
  acknowledged: number
  isBusy: boolean
}

/** Writes growing numbers under keys of each gateway until it is stopped. */
export class ChangeLoad {
  readonly #keys: readonly WrittenKey[]
  readonly #timer: NodeJS.Timeout
  readonly #running = new Set<Promise<void>>()
  #next = 0
  /** Acknowledged changes, by gateway. */
  readonly acknowledged = new Map<LoadedGateway, number>()
  refused = 0

  /** @param prefix of the keys */
  constructor(gateways: readonly LoadedGateway[], perSecond: number, prefix: string) {
    this.#keys = Array.from({ length: KEYS_PER_GATEWAY }, (_, number) =>
      gateways.map((gateway) => ({
        gateway,
        key: `${prefix}.${gateway.name}.${number}`,
        sent: 0,
        acknowledged: 0,
        isBusy: false,
      })),
    ).flat()
    for (const gateway of gateways) this.acknowledged.set(gateway, 0)
    const startedAtMs = performance.now()
    // A timer of a busy process is late, and the rate is not to fall.
    this.#timer = setInterval(() => {
      const due = ((performance.now() - startedAtMs) * perSecond) / 1_000
      while (this.#next < due) this.#write()
    }, TICK_MS).unref()
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await Promise.all(this.#running)
  }

  get total(): number {
    return [...this.acknowledged.values()].reduce((sum, count) => sum + count, 0)
  }

  /** Number of acknowledged changes that a gateway does not have. */
  async lostOn(reader: LoadedGateway): Promise<number> {
    let lost = 0
    for (const { key, acknowledged } of this.#keys) {
      if (acknowledged === 0) continue
      const { text } = await reader.call('GET', `/ha/config/${key}`)
      const { value = '0' } = JSON.parse(text) as { value?: string }
      lost += Math.max(0, acknowledged - Number.parseInt(value, 16))
    }
    return lost
  }

  /** A key whose last change is still running is left out of the turn. */
  #write(): void {
    const written = this.#keys[this.#next % this.#keys.length]
    this.#next += 1
    if (written.isBusy) return
    written.isBusy = true
    written.sent += 1
    const running = this.#change(written, written.sent).finally(() => {
      written.isBusy = false
      this.#running.delete(running)
    })
    this.#running.add(running)
  }

  async #change(written: WrittenKey, value: number): Promise<void> {
    const { gateway, key } = written
    const body = { key, value: value.toString(16).padStart(8, '0') }
    const status = await statusOf(gateway.call('POST', '/ha/config', body, OPERATOR))
    if (status !== 200) {
      this.refused += 1
      return
    }
    written.acknowledged = value
    this.acknowledged.set(gateway, (this.acknowledged.get(gateway) ?? 0) + 1)
  }
}

/** Chats of clients, one after the other on each gateway, until it is stopped. */
export class ChatLoad {
  #isStopped = false
  readonly #done: Promise<unknown>
  sent = 0
  failed = 0
  slowestMs = 0

  /** @param model of a worker that every gateway has */
  constructor(gateways: readonly LoadedGateway[], model: string) {
    this.#done = Promise.all(gateways.map((gateway) => this.#run(gateway, model)))
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#done
  }

  async #run(gateway: LoadedGateway, model: string): Promise<void> {
    const body = { model, messages: [{ role: 'user', content: 'Hello' }] }
    while (!this.#isStopped) {
      const startedAtMs = performance.now()
      const status = await statusOf(gateway.call('POST', '/v1/chat/completions', body, CLIENT))
      this.sent += 1
      if (status !== 200) this.failed += 1
      this.slowestMs = Math.max(this.slowestMs, performance.now() - startedAtMs)
      await pause(CHAT_PAUSE_MS)
    }
  }
}

/** @returns 0 without a response */
function statusOf(reply: Promise<Reply>): Promise<number> {
  return reply.then(
    ({ status }) => status,
    () => 0,
  )
}
