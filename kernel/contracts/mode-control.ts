/**
 * The part of a connection mode's control operations that the kernel uses; `WorkerControl` extends it for plugins.
 */
import type { RequestContext } from './request.ts'
import type { HeaderList } from './transport.ts'
import type { WorkerEntry } from './worker.ts'

export interface ModeControl {
  /** As in `WorkerEntry.connectionMode`. */
  readonly mode: string
  /** URL schemes of its workers, without colon, such as `http`. */
  readonly schemes: readonly string[]
  /**
   * Writes the credential headers of a worker. Called for each request to a worker of the mode, external or not.
   *
   * @param mayPassOn true if a client's authorization may be forwarded: it is no key of the gateway
   * @returns false if a bearer token is sufficient; then nothing was written
   */
  writeCredentials?(
    headers: HeaderList,
    ctx: RequestContext,
    worker: WorkerEntry,
    mayPassOn: (authorization: string) => boolean,
  ): boolean
  /** Called after every plugin has stopped. */
  close?(): void
}
