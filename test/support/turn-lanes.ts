/** Concurrent clients of the Responses API, each with its own connection, that record the acknowledged turns. */
import { Agent, request } from 'node:http'

/** A response that its client received. */
export interface AcknowledgedTurn {
  readonly id: string
  readonly input: string
  readonly output: string
  readonly previousId: string | null
}

export interface LaneOptions {
  readonly model: string
  readonly lanes: number
  /** Turns per chain; then a lane begins a new chain. */
  readonly chainLength: number
  /** Total number of turns. */
  readonly turns?: number
}

/** Status and body; status 0 if the connection broke. */
interface Response {
  readonly status: number
  readonly text: string
}

export class TurnLanes {
  readonly acknowledged: AcknowledgedTurn[] = []
  /** Number of error responses by code. */
  readonly refusals = new Map<string, number>()
  /** Resolves when all lanes have ended. */
  readonly done: Promise<void>
  readonly #base: URL
  readonly #options: LaneOptions
  readonly #agent: Agent
  #begun = 0
  #isStopped = false

  constructor(base: string, options: LaneOptions) {
    this.#base = new URL(base)
    this.#options = options
    this.#agent = new Agent({ keepAlive: true, maxSockets: options.lanes })
    const lanes = Array.from({ length: options.lanes }, () => this.#lane())
    this.done = Promise.all(lanes).then(() => this.#agent.destroy())
  }

  /** Ends each lane after its current turn. */
  stop(): Promise<void> {
    this.#isStopped = true
    return this.done
  }

  /** @returns the ids and statuses of responses that are missing or differ from the acknowledged ones */
  static async missing(base: string, turns: readonly AcknowledgedTurn[], lanes = 64): Promise<string[]> {
    const agent = new Agent({ keepAlive: true, maxSockets: lanes })
    const missing: string[] = []
    let next = 0
    const look = async () => {
      while (next < turns.length) {
        const { id, output, previousId } = turns[next++]
        const { status, text } = await send(agent, new URL(`/v1/responses/${id}`, base), 'GET')
        const isSame =
          status === 200 &&
          textOf(text) === output &&
          (JSON.parse(text) as { previous_response_id: unknown }).previous_response_id === previousId
        if (!isSame) missing.push(`${id}: ${status} ${text.slice(0, 200)}`)
      }
    }
    await Promise.all(Array.from({ length: lanes }, look))
    agent.destroy()
    return missing
  }

  async #lane(): Promise<void> {
    const { model, chainLength, turns = Number.POSITIVE_INFINITY } = this.#options
    let previousId: string | null = null
    let length = 0
    while (!this.#isStopped && this.#begun < turns) {
      const input = `turn ${this.#begun++}`
      const body = JSON.stringify({ model, input, previous_response_id: previousId })
      const { status, text } = await send(this.#agent, new URL('/v1/responses', this.#base), 'POST', body)
      // The server is down.
      if (status === 0) return
      if (status !== 200) {
        const { error } = JSON.parse(text) as { error: { code: string } }
        this.refusals.set(error.code, (this.refusals.get(error.code) ?? 0) + 1)
        previousId = null
        continue
      }
      const { id } = JSON.parse(text) as { id: string }
      this.acknowledged.push({ id, input, output: textOf(text), previousId })
      length = (length + 1) % chainLength
      previousId = length === 0 ? null : id
    }
  }
}

function textOf(text: string): string {
  return JSON.stringify((JSON.parse(text) as { output: unknown }).output)
}

function send(agent: Agent, url: URL, method: string, body?: string): Promise<Response> {
  return new Promise((resolve) => {
    const headers = { 'content-type': 'application/json' }
    const call = request(url, { agent, method, headers }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part
      })
      response.on('end', () => resolve({ status: response.complete ? (response.statusCode ?? 0) : 0, text }))
      response.on('error', () => resolve({ status: 0, text }))
    })
    call.on('error', () => resolve({ status: 0, text: '' }))
    call.end(body)
  })
}
