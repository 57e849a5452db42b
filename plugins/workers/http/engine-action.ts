/** Work that operators ask of engines, as HTTP calls. */
import type { EngineAction, WorkerTarget } from '#kernel'
import { type CallWorker, describeFailure, isGoodStatus } from './probe.ts'

const MAX_REPLY_BYTES = 1_048_576

/** @returns null when the engine took it, else why not; never rejects */
export async function performAction(
  call: CallWorker,
  target: WorkerTarget,
  action: EngineAction,
  timeoutMs: number,
): Promise<string | null> {
  const body = action.kind === 'start_profile' ? JSON.stringify(action.options) : undefined
  try {
    const reply = await call(target, {
      method: 'POST',
      path: `/${action.kind}`,
      ...(body !== undefined && { body, headers: ['content-type', 'application/json'] }),
      timeoutMs,
      maxBodyBytes: MAX_REPLY_BYTES,
    })
    return isGoodStatus(reply.status) ? null : `the worker answered ${reply.status}`
  } catch (error) {
    return describeFailure(error)
  }
}
