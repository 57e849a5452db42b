/**
 * Usage of budgets over all gateways of a mesh: counters in its engine. Runs on control. A batch of unknown outcome is
 * repeated under its sequence number, so that it counts once.
 */
import { hash } from 'node:crypto'
import { type CounterChange, settlesWithin } from '#kernel'
import { CoalescedWork, uuidV7 } from '#shared'
import { addUse, type BudgetUse, DAY_MS } from './usage-record.ts'

/** Longest wait of a request for the engine; then the last known totals count. */
const ENGINE_WAIT_MS = 250
const RETRY_MS = 1_000
/** Counters of one question to the engine. */
const MAX_ASKED = 500
const MAX_KNOWN = 10_000
/** A counter outlives its period by a week. */
const KEEP_MS = 7 * DAY_MS

/** Usage that the engine has not confirmed. */
interface Added extends BudgetUse {
  readonly keepMs: number
}

interface Batch {
  readonly sequence: number
  readonly added: ReadonlyMap<string, Added>
}

export type Count = (
  writer: string,
  sequence: number,
  changes: readonly CounterChange[],
) => Promise<readonly number[]>

export class BudgetCounters {
  readonly #count: Count
  readonly #writer = uuidV7()
  /** Totals of the engine by budget. */
  readonly #known = new Map<string, BudgetUse>()
  #pending = new Map<string, Added>()
  /** Sent, but not confirmed. */
  #unsure: Batch | null = null
  #wanted = new Set<string>()
  #sequence = 0
  readonly #sending = new CoalescedWork(() => this.#sendAll())
  #retry: NodeJS.Timeout | null = null
  #isStopped = false

  constructor(count: Count) {
    this.#count = count
  }

  /** @param endsAtMs end of the period of the budget, milliseconds since 1970 */
  add(budget: string, { tokens, costNano }: BudgetUse, endsAtMs: number): void {
    const name = nameOf(budget)
    const keepMs = Math.max(0, endsAtMs - Date.now()) + KEEP_MS
    const before = this.#pending.get(name)
    if (before === undefined) this.#pending.set(name, { tokens, costNano, keepMs })
    else addUse(before, { tokens, costNano })
    void this.#sending.run()
  }

  /** Totals of all gateways; the last known ones if the engine does not answer in time. */
  async read(budgets: readonly string[]): Promise<BudgetUse[]> {
    const names = budgets.map(nameOf)
    for (const name of names) this.#wanted.add(name)
    const asked = this.#sending.run()
    // While the engine is known to be away, nothing waits for it.
    if (this.#retry === null) await settlesWithin(asked, ENGINE_WAIT_MS)
    return names.map((name) => {
      const total = { ...(this.#known.get(name) ?? { tokens: 0, costNano: 0 }) }
      for (const added of [this.#unsure?.added.get(name), this.#pending.get(name)])
        if (added !== undefined) addUse(total, added)
      return total
    })
  }

  /** Sends what is pending; gives up at the first failure. */
  async stop(): Promise<void> {
    this.#isStopped = true
    if (this.#retry !== null) clearTimeout(this.#retry)
    await this.#sending.run()
  }

  /** Never rejects. */
  async #sendAll(): Promise<void> {
    while (this.#unsure !== null || this.#pending.size > 0 || this.#wanted.size > 0) {
      this.#unsure ??= this.#nextBatch()
      const { sequence, added } = this.#unsure
      const reads = [...this.#wanted].filter((name) => !added.has(name)).slice(0, MAX_ASKED)
      for (const name of [...added.keys(), ...reads]) this.#wanted.delete(name)
      const names = [...added.keys(), ...reads]
      try {
        const totals = await this.#count(
          this.#writer,
          sequence,
          names.flatMap((name) => toChanges(name, added.get(name))),
        )
        this.#unsure = null
        for (const [at, name] of names.entries()) this.#know(name, totals[at * 2], totals[at * 2 + 1])
      } catch {
        // The mesh logs and reports outages of its engine.
        this.#retryLater()
        return
      }
    }
  }

  #nextBatch(): Batch {
    const some = [...this.#pending].slice(0, MAX_ASKED)
    for (const [name] of some) this.#pending.delete(name)
    if (some.length > 0) this.#sequence++
    return { sequence: this.#sequence, added: new Map(some) }
  }

  #know(name: string, tokens: number, costNano: number): void {
    if (this.#known.size >= MAX_KNOWN) this.#known.clear()
    this.#known.set(name, { tokens, costNano })
  }

  #retryLater(): void {
    if (this.#isStopped || this.#retry !== null) return
    this.#retry = setTimeout(() => {
      this.#retry = null
      void this.#sending.run()
    }, RETRY_MS).unref()
  }
}

/** Names of tenants and keys may be long. */
function nameOf(budget: string): string {
  return `budget:${hash('sha256', budget, 'hex').slice(0, 32)}`
}

function toChanges(name: string, added: Added | undefined): CounterChange[] {
  const { tokens, costNano, keepMs } = added ?? { tokens: 0, costNano: 0, keepMs: KEEP_MS }
  return [
    { counter: `${name}:tokens`, add: Math.round(tokens), keepMs },
    { counter: `${name}:cost`, add: Math.round(costNano), keepMs },
  ]
}
