/** A job that this thread has claimed. */
import { type Change, type Collection, GATEWAY_TENANT, type Job } from '#kernel'
import type { ClaimedJob } from './collections.ts'

export class HeldJob implements Job {
  readonly tenant: string
  readonly responseId: string
  readonly attempts: number
  readonly #claimId: string

  constructor({ tenant, responseId, attempts }: ClaimedJob, owner: string) {
    this.tenant = tenant
    this.responseId = responseId
    this.attempts = attempts
    this.#claimId = `${owner}.${responseId}`
  }

  /** The change that puts it among the claimed ones. */
  claiming({ name }: Collection<ClaimedJob>): Change {
    const { tenant, responseId, attempts } = this
    const value: ClaimedJob = { tenant, responseId, attempts }
    return { kind: 'put', collection: name, tenant: GATEWAY_TENANT, id: this.#claimId, value }
  }

  /** The change that takes it from the claimed ones. @param onlyIf the version that its claim must have */
  ending({ name }: Collection<ClaimedJob>, onlyIf?: string): Change {
    return { kind: 'delete', collection: name, tenant: GATEWAY_TENANT, id: this.#claimId, onlyIf }
  }

  /** Of its claim; undefined when it is not among the claimed ones. */
  async version(claimedJobs: Collection<ClaimedJob>): Promise<string | undefined> {
    return (await claimedJobs.read(GATEWAY_TENANT, this.#claimId))?.version
  }
}
