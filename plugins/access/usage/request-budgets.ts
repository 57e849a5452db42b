/** Budgets of requests: reserves the expected tokens before a request runs, and settles them by its usage at its end. */
import { type RequestContext, type RequestSlot, tenantOf } from '#kernel'
import type { Budgets, Reservation } from './budgets.ts'
import type { UsageMeter } from './usage-meter.ts'

/** For the estimate of a prompt. */
const BYTES_PER_TOKEN = 4

export class RequestBudgets {
  readonly #budgets: Budgets
  readonly #meter: UsageMeter
  readonly #reservations: RequestSlot<Reservation>

  constructor(budgets: Budgets, meter: UsageMeter, reservations: RequestSlot<Reservation>) {
    this.#budgets = budgets
    this.#meter = meter
    this.#reservations = reservations
  }

  /** @throws budget_exceeded (429) */
  enter(ctx: RequestContext): Promise<undefined> | undefined {
    const tokens = Math.ceil((Number(ctx.header('content-length')) || 0) / BYTES_PER_TOKEN)
    const reserved = this.#budgets.reserve(tenantOf(ctx), ctx.identity?.keyId ?? '', tokens)
    if (reserved instanceof Promise) return reserved.then((reservation) => this.#keep(ctx, reservation))
    return this.#keep(ctx, reserved)
  }

  /** Counts the usage. Resolves when a correction that arrives later is counted too. */
  end(ctx: RequestContext): Promise<void> | undefined {
    this.#meter.count(ctx)
    const reservation = this.#reservations.get(ctx)
    const used = this.#meter.usedBy(ctx)
    if (reservation !== undefined) this.#budgets.settle(reservation, used)
    return ctx.usageCorrection?.then(() => {
      this.#meter.count(ctx)
      if (reservation !== undefined) this.#budgets.correct(reservation, used, this.#meter.usedBy(ctx))
    })
  }

  #keep(ctx: RequestContext, reservation: Reservation | null): undefined {
    if (reservation === null) return
    // The request may have ended while its budget was read.
    if (ctx.isDone) this.#budgets.settle(reservation, null)
    else this.#reservations.set(ctx, reservation)
  }
}
