/** One attempt that two workers share: picked together, counted together, told apart when one of them fails. */
import type { Attempt, Choice, Fault, PickOptions, WorkerBalance } from '../balance/worker-balance.ts'
import type { PairLeg } from '../contracts/pair.ts'
import type { RelayContext } from '../contracts/reply-sink.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import type { AttemptNotes } from './attempt-notes.ts'

/** The decode worker stands for the pair, since its answer is the client's. */
export class PairAttempt implements Attempt {
  readonly prefill: Attempt
  readonly decode: Attempt
  /** How the prefill leg went; null unless somebody wants to know. */
  prefillNotes: AttemptNotes | null = null

  constructor(prefill: Attempt, decode: Attempt) {
    this.prefill = prefill
    this.decode = decode
  }

  /**
   * Prefill first, then decode, each by the policy of its own leg.
   *
   * @throws what `WorkerBalance.pick` does; then neither is counted
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

  /** Of the decode worker; the prefill worker is spoken for when its own answer has ended. */
  succeeded(): void {
    this.decode.succeeded()
  }

  failed(fault?: Fault): void {
    this.decode.failed(fault)
  }

  /** Both stay in the count until the answer is over. */
  release(): void {
    this.prefill.release()
    this.decode.release()
  }
}
