/** What an engine says of its model or itself. */

import type { EngineInfo, WorkerEntry } from '#kernel'
import { parseBoundedJson } from '#shared'
import { type CallWorker, isGoodStatus } from './probe.ts'

/** What engines without the route answer. */
const NO_SUCH_ROUTE: ReadonlySet<number> = new Set([404, 405, 501])

const PATH_OF = { model: '/get_model_info', server: '/get_server_info' } as const
const MAX_INFO_BYTES = 4_194_304

/** @throws UpstreamFailure */
export async function readEngineInfo(
  call: CallWorker,
  worker: WorkerEntry,
  about: 'model' | 'server',
  timeoutMs: number,
): Promise<EngineInfo> {
  const path = PATH_OF[about]
  const reply = await call(worker, { method: 'GET', path, timeoutMs, maxBodyBytes: MAX_INFO_BYTES })
  if (NO_SUCH_ROUTE.has(reply.status)) return { kind: 'none' }
  if (!isGoodStatus(reply.status)) return { kind: 'reply', reply }
  const members = readMembers(reply.body)
  // What is no object tells nothing that may be shown: it can hold the same settings in another shape.
  return members === null ? { kind: 'none' } : { kind: 'members', members }
}

function readMembers(body: Buffer): Record<string, unknown> | null {
  try {
    const value = parseBoundedJson(body)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null
  } catch {
    return null
  }
}
