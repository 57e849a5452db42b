/** How many data-parallel ranks an engine has. */
import type { RuntimeType } from '#kernel'
import { serverInfo } from './discover.ts'
import { httpWorkerErrors } from './errors.ts'
import type { Inquiry } from './inquiry.ts'

/** More than any engine has: a wrong number must not fill the table. */
const MAX_RANKS = 1_024

/**
 * @returns 1 for an engine without data parallelism, which stays one worker
 * @throws rank_discovery_failed, which fails the registration
 */
export async function discoverRankCount(
  inquiry: Inquiry,
  url: string,
  runtime: RuntimeType,
): Promise<number> {
  if (runtime !== 'sglang') {
    throw httpWorkerErrors.rank_discovery_failed(url, `${runtime} engines have no route for it`)
  }
  const info = await serverInfo(inquiry)
  if (info === null) throw httpWorkerErrors.rank_discovery_failed(url, 'no answer of /server_info')
  const count = Number(info.dp_size ?? Number.NaN)
  if (!Number.isInteger(count) || count < 1 || count > MAX_RANKS) {
    throw httpWorkerErrors.rank_discovery_failed(url, `dp_size of /server_info is not from 1 to ${MAX_RANKS}`)
  }
  return count
}
