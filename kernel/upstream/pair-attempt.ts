/** One attempt on a prefill and a decode worker, which are picked and counted together. */
import type { Attempt, Choice, Fault, PickOptions, WorkerBalance } from '../balance/worker-balance.ts'
import type { PairLeg } from '../contracts/pair.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import type { AttemptNotes } from './attempt-notes.ts'

/** As an `Attempt` it is the decode worker's, whose response the client gets. */
export class PairAttempt implements Attempt {
  readonly prefill: Attempt
  readonly decode: Attempt
  /** Notes of the prefill leg; null without an onAttempt hook. */
  prefillNotes: AttemptNotes | null = null

  constructor(prefill: Attempt, decode: Attempt) {
    this.prefill = prefill
    this.decode = decode
  }

  /**
   * Picks prefill first, then decode, each by the policy of its leg.
   *
   * @throws as `WorkerBalance.pick`; then neither is counted
   */
  static pick(
    balance: WorkerBalance,
    ctx: RelayContext,
    model: string,
    options: PickOptions | undefined,
  ): PairAttempt {
    const prefill = balance.pick(ctx, model, { ...options, leg: 'prefill' })
    try {
      return new PairAttempt(prefill, balance.pick(ctx, model, { ...options, leg: 'decode' }))
    } catch (error) {
      prefill.release()
      throw error
    }
  }

  get worker(): WorkerEntry {
    return this.decode.worker
  }

  get policy(): string {
    return this.decode.policy
  }

  get choice(): Choice | null {
    return this.decode.choice
  }

  leg(leg: PairLeg): Attempt {
    return leg === 'prefill' ? this.prefill : this.decode
  }

  firstByte(): void {
    this.decode.firstByte()
  }

  /** Of the decode worker; the prefill worker's result is reported when its own response has ended. */
  succeeded(): void {
    this.decode.succeeded()
  }

  failed(fault?: Fault): void {
    this.decode.failed(fault)
  }

  /** Both stay counted until the response has ended. */
  release(): void {
    this.prefill.release()
    this.decode.release()
  }
}
