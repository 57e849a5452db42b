/** Background work: what goes on when no request waits for it any more, and must still end before the gateway does. */

export interface BackgroundWork {
  /** Settles when the work is over; what it rejects with is logged and counted. */
  readonly done: Promise<unknown>
  /** Called once when the grace period is over and the work is not: the last moment to note how far it came. */
  cancel?(): void
}
