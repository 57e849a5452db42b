/** What waiting for admission is, whoever lets requests in. */

/** How a wait ended: with a permit, with the time over, or because the request is gone. */
export type WaitOutcome = 'entered' | 'timed_out' | 'left'

export interface Waiting {
  /** Never rejects. */
  readonly outcome: Promise<WaitOutcome>
  /** Gives the place up; nothing once the wait is over. */
  leave(): void
}
