/** The OnRequest attach point: before the handler, modules may change the request or respond to it. */
import type { RequestContext, WholeResponse } from '#kernel'
import { wasmErrors } from '../errors.ts'
import type { EditKind } from '../threads/guest-task.ts'
import { type Chain, selectModules } from './active-modules.ts'
import { applyEdits, toWire } from './header-edits.ts'
import type { PhaseChain, PhaseEnd } from './phase-chain.ts'
import { messageOf } from './phase-message.ts'

/** @throws payload_too_large (413) when a module needs a body that is too large to be shown, wasm_module_failed (500) */
export function runOnRequest(
  phases: PhaseChain,
  chain: Chain,
  ctx: RequestContext,
  maxBodyBytes: number,
): WholeResponse | undefined | Promise<WholeResponse | undefined> {
  const modules = selectModules(chain, ctx)
  if (modules.length === 0) return undefined
  const body = chain.needsRequestBody ? ctx.bodyBytes : null
  if (body !== null && body.length > maxBodyBytes) throw wasmErrors.payload_too_large(maxBodyBytes)
  const message = messageOf(ctx, chain, { point: 'OnRequest', body })
  const end = phases.run(modules, message)
  return end instanceof Promise ? end.then((ended) => applyEnd(ctx, ended)) : applyEnd(ctx, end)
}

function applyEnd(ctx: RequestContext, end: PhaseEnd): WholeResponse | undefined {
  if (ctx.isDone) return undefined
  if (end.rejection !== null) return toResponse(end.rejection)
  for (let i = 0; i < end.edits.length; i += 3) {
    const [kind, name, value] = [end.edits[i], end.edits[i + 1], end.edits[i + 2]]
    ctx.changeHeader(kind as EditKind, name, toWire(value))
  }
  if (end.body !== null) ctx.setBody(Buffer.from(end.body))
  return undefined
}

function toResponse({ status, edits, body }: NonNullable<PhaseEnd['rejection']>): WholeResponse {
  return { status, headers: applyEdits([], edits), body: Buffer.from(body) }
}
