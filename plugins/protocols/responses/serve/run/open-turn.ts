/** Opens the turn of a response: one generation, or a loop over several if it has tools of the gateway. */

import { type Generation, type GenerationListener, Generations, type RequestContext } from '#kernel'
import { responsesErrors } from '../../errors.ts'
import type { Parts } from '../parts.ts'
import { withUsageOf } from './auto-compact.ts'
import type { Plan } from './plan.ts'

/** @throws tool_not_available (400), and as a generation */
export function openTurn(
  { host, toolLoop }: Parts,
  ctx: RequestContext,
  plan: Plan,
  stream: boolean,
  given: GenerationListener,
): Generation {
  const { generation, request, approvals, listed, origins } = plan
  const { compaction } = plan.lasting
  const accepts = plan.accepts ?? undefined
  const listener = compaction === null ? given : withUsageOf(compaction, given)
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
  return host.use(Generations).open(ctx, generation, { stream, accepts, listener })
}

/** The output is empty, or a compaction that the plan has. */
function answerAtOnce(listener: GenerationListener): Generation {
  listener.onEvent({ type: 'finished', usage: null })
  return { abort() {} }
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
