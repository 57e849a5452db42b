/**
 * What the kernel itself asks of who looks after the workers of one connection mode. How those are found, described and
 * managed is agreed among plugins; whoever asks for a control finds there the whole of it.
 */
import type { RequestContext } from './request.ts'
import type { HeaderList } from './transport.ts'
import type { WorkerEntry } from './worker.ts'

export interface ModeControl {
  /** Of the workers that it looks after, as in `WorkerEntry.connectionMode`. */
  readonly mode: string
  /** Of their URLs, without colon, such as `http`. */
  readonly schemes: readonly string[]
  /**
   * Writes the credentials for a worker that is external or has a provider in that service's own way.
   *
   * @param mayPassOn true for a client's authorization that may reach workers: not one of the gateway's own keys
   * @returns false when a bearer token will do; then nothing was written
   */
  writeCredentials?(
    headers: HeaderList,
    ctx: RequestContext,
    worker: WorkerEntry,
    mayPassOn: (authorization: string) => boolean,
  ): boolean
  /** At the end, after every plugin has stopped. */
  close?(): void
}
