/** Opens the turn of a response: one generation, or a loop over several if it has tools of the gateway. */

import { Generations, type RequestContext, type ToolLoopEvent, type ToolLoopListener } from '#kernel'
import { responsesErrors } from '../../errors.ts'
import { LoopAdapter } from '../output/loop-adapter.ts'
import type { Parts } from '../parts.ts'
import { behindCompaction } from './auto-compact.ts'
import type { Plan } from './plan.ts'

/** Controls a generation, or a loop over several, while it runs. */
export interface Turn {
  pause(): void
  resume(): void
  abort(): void
}

/** @throws tool_not_available (400), and as a generation */
export function openTurn(
  { host, toolLoop }: Parts,
  ctx: RequestContext,
  plan: Plan,
  stream: boolean,
  onEvent: (event: ToolLoopEvent) => void,
): Turn {
  const { generation, request, approvals, listed, origins } = plan
  const { compaction } = plan.lasting
  const accepts = plan.accepts ?? undefined
  const listener = { onEvent: compaction === null ? onEvent : behindCompaction(compaction, onEvent) }
  if (plan.isAnswered) return answerAtOnce(listener)
  const gatewayTools = request.tools.gateway
  if (toolLoop === undefined) refuseTools(plan)
  else if (gatewayTools.length > 0 || approvals.length > 0)
    return toolLoop.run(
      ctx,
      {
        request: { ...generation, tools: request.tools.functions, toolChoice: null },
        toolChoice: request.toolChoice.choice,
        tools: gatewayTools,
        approvals,
        listed,
        origins,
        limits: { maxToolCalls: request.body.max_tool_calls ?? null, atLimit: 'answer' },
        stream,
        accepts,
      },
      listener,
    )
  return host.use(Generations).open(ctx, generation, { stream, accepts, listener: new LoopAdapter(listener) })
}

/** The output is empty, or a compaction that the plan has. */
function answerAtOnce({ onEvent }: ToolLoopListener): Turn {
  onEvent({ type: 'finished', reason: 'stop', matchedStop: null, usage: null, iterations: 0, toolCalls: 0 })
  return { pause() {}, resume() {}, abort() {} }
}

/** Checks the tools of a turn that begins later. @throws tool_not_available, and as `ToolLoopService.check` (400) */
export function checkTools({ toolLoop }: Pick<Parts, 'toolLoop'>, plan: Plan): void {
  const { lasting, request, approvals } = plan
  if (toolLoop === undefined) refuseTools(plan)
  else toolLoop.check(lasting.tenant, { tools: request.tools.gateway, approvals })
}

/** Without the mcp plugin built-in tools are dropped; tool servers and approvals are rejected. */
function refuseTools({ request, approvals }: Plan): void {
  const mcp = request.tools.gateway.find(({ kind }) => kind === 'mcp')
  if (mcp === undefined && approvals.length === 0) return
  throw responsesErrors.tool_not_available.with({ param: mcp?.param ?? 'input' }, 'mcp')
}
