/** Background work: it runs without a request and must end before the gateway does. */

export interface BackgroundWork {
  /** Settles when the work has ended; rejections are logged and counted. */
  readonly done: Promise<unknown>
  /** Called once if the work has not ended at the end of the grace period, to save its progress. */
  cancel?(): void
}
