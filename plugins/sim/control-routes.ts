/** Routes that control and inspect the simulation. */
import { apiErrorFormat, type Method, type RequestContext, type RouteDefinition, type TSchema } from '#kernel'
import type { Engine } from './engine.ts'
import { validators } from './wire.ts'

export function controlRoutes(engine: Engine): RouteDefinition[] {
  const { faults, answers, log, stats } = engine
  const { faultRule, scriptedAnswer } = validators
  const showFaults = (ctx: RequestContext) => ctx.json(200, { faults: faults.list() })
  const showAnswers = (ctx: RequestContext) => ctx.json(200, { answers: answers.list() })
  const showRequests = (ctx: RequestContext) => ctx.json(200, { requests: log?.list() ?? [] })
  const route = (
    method: Method,
    path: string,
    summary: string,
    handler: (ctx: RequestContext) => void,
    body?: TSchema,
  ): RouteDefinition => ({
    method,
    path,
    access: 'public',
    errors: apiErrorFormat,
    headers: ['authorization'],
    handler: (ctx) => {
      engine.checkKey(ctx)
      handler(ctx)
    },
    docs: { summary, tag: 'sim', body, responses: { 200: { description: 'The current list.' } } },
  })

  return [
    route('GET', '/sim/faults', 'List scripted faults', showFaults),
    route(
      'POST',
      '/sim/faults',
      'Script a fault for the next requests',
      (ctx) => {
        faults.add(ctx.body(faultRule))
        showFaults(ctx)
      },
      faultRule.schema,
    ),
    route('DELETE', '/sim/faults', 'Remove all scripted faults', (ctx) => {
      faults.clear()
      showFaults(ctx)
    }),
    route('GET', '/sim/answers', 'List scripted answers', showAnswers),
    route(
      'POST',
      '/sim/answers',
      'Script an answer for the next requests',
      (ctx) => {
        answers.add(ctx.body(scriptedAnswer))
        showAnswers(ctx)
      },
      scriptedAnswer.schema,
    ),
    route('DELETE', '/sim/answers', 'Remove all scripted answers', (ctx) => {
      answers.clear()
      showAnswers(ctx)
    }),
    route('GET', '/sim/requests', 'List the last 1,000 requests, oldest first', showRequests),
    route('DELETE', '/sim/requests', 'Clear the recorded requests', (ctx) => {
      log?.clear()
      showRequests(ctx)
    }),
    route('GET', '/sim/stats', 'Counters of the engine', (ctx) => ctx.json(200, stats)),
  ]
}
