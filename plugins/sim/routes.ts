/** The engine's HTTP surface: serving, discovery and probes. Control of the simulation is in control-routes.ts. */
import {
  apiErrorFormat,
  type ErrorFormat,
  type GatewayError,
  type RequestContext,
  type RouteDefinition,
  type TSchema,
  type Validator,
} from '#kernel'
import { generateChat } from './chat.ts'
import { generateCompletion } from './completion.ts'
import { controlRoutes } from './control-routes.ts'
import { classify, embed, rerank } from './embedding.ts'
import type { Engine } from './engine.ts'
import {
  loadReport,
  metricsText,
  modelInfo,
  modelList,
  props,
  serverInfo,
  slots,
  VERSION,
} from './engine-info.ts'
import { Exchange } from './exchange.ts'
import { generateNative } from './generate.ts'
import { fixedResponses, type Generation, type Setting, scriptedBody, wholeOnly } from './generation.ts'
import { personalAnswer, refusalOf, understood } from './personal-answer.ts'
import type { Personality, Refusal } from './personality.ts'
import { promptsOf } from './prompt.ts'
import { RECORDED_HEADERS } from './request-log.ts'
import { generateResponse } from './responses.ts'
import { validators } from './wire.ts'

const HEADERS = [...RECORDED_HEADERS, 'x-sim-fault', 'x-sim-fixed']

/** Common members of serving requests. */
interface ServingRequest {
  readonly model?: string | null
  readonly stream?: boolean | null
  readonly sim_fault?: string | null
}

interface Serving<T extends ServingRequest> {
  readonly path: string
  readonly summary: string
  readonly validator: Validator<T>
  readonly idPrefix: string
  readonly generate: (request: T, setting: Setting) => Generation
  /** Request of the prepared answer for load tests; absent if unsupported. */
  readonly fixed?: T
}

export function simRoutes(engine: Engine): RouteDefinition[] {
  const { responses } = engine.config
  const { lacks, streamsResponses, lacksOpenApi } = engine.personality
  const inference = servingRoutes(engine).filter(({ path }) => !lacks.has(path))
  if (responses || streamsResponses === true) inference.push(responsesRoute(engine))
  const described = lacksOpenApi === true ? [] : [openApiRoute(engine, inference)]
  return [...inference, ...described, ...infoRoutes(engine), ...controlRoutes(engine)]
}

function openApiRoute(engine: Engine, described: readonly RouteDefinition[]): RouteDefinition {
  const paths = Object.fromEntries(described.map(({ path }) => [path, { post: {} }]))
  return infoRoute(engine, 'GET', '/openapi.json', 'Routes that gateways detect API formats by', (exchange) =>
    exchange.json(200, { openapi: '3.1.0', paths }),
  )
}

function servingRoutes(engine: Engine): RouteDefinition[] {
  const { embeddingDimensions } = engine.config
  return [
    servingRoute(engine, {
      path: '/v1/chat/completions',
      summary: 'Chat completion',
      validator: validators.chat,
      idPrefix: 'chatcmpl-',
      generate: generateChat,
      fixed: { messages: [{ role: 'user', content: 'Say something.' }] },
    }),
    servingRoute(engine, {
      path: '/v1/completions',
      summary: 'Text completion',
      validator: validators.completion,
      idPrefix: 'cmpl-',
      generate: generateCompletion,
      fixed: { prompt: 'Say something.' },
    }),
    servingRoute(engine, {
      path: '/generate',
      summary: 'Native generation',
      validator: validators.generate,
      idPrefix: 'gnt-',
      generate: generateNative,
      fixed: { text: 'Say something.' },
    }),
    servingRoute(engine, {
      path: '/v1/embeddings',
      summary: 'Embeddings',
      validator: validators.embedding,
      idPrefix: 'embd-',
      generate: (request, { model, seed }) => {
        const value = embed(request, model, seed, embeddingDimensions)
        return wholeOnly(promptsOf(request.input), value)
      },
    }),
    servingRoute(engine, {
      path: '/v1/rerank',
      summary: 'Rerank scores, best first',
      validator: validators.rerank,
      idPrefix: 'rerank-',
      generate: (request, { id }) =>
        wholeOnly(promptsOf([request.query, ...request.documents]), rerank(request, id)),
    }),
    servingRoute(engine, {
      path: '/v1/classify',
      summary: 'Class probabilities',
      validator: validators.classify,
      idPrefix: 'classify-',
      generate: (request, setting) => {
        const value = classify(request, setting)
        return wholeOnly(promptsOf(request.input), value)
      },
    }),
  ]
}

function responsesRoute(engine: Engine): RouteDefinition {
  return servingRoute(engine, {
    path: '/v1/responses',
    summary: 'Response; nothing is stored',
    validator: validators.responses,
    idPrefix: 'resp_',
    generate: generateResponse,
    fixed: { input: 'Say something.' },
  })
}

function servingRoute<T extends ServingRequest>(engine: Engine, serving: Serving<T>): RouteDefinition {
  const { path, summary, validator, idPrefix, generate, fixed } = serving
  const responses =
    fixed === undefined
      ? null
      : fixedResponses(engine.config, (model) =>
          generate({ ...fixed, model }, engine.setting(model, idPrefix, performance.now(), null)),
        )

  const serveFixed = (exchange: Exchange, prepared: (model: string | null) => Generation) => {
    const { ctx } = exchange
    const { model, stream } = ctx.peek()
    const fault = engine.faultFor(ctx, true, null)
    exchange.run(fault, () => exchange.deliver(prepared(model), stream, fault))
  }

  const serve = (exchange: Exchange) => {
    const { ctx } = exchange
    const rejected = engine.personality.rejects?.get(path)
    // Whatever the body is.
    if (rejected !== undefined) {
      exchange.run(engine.faultFor(ctx, true, null), () => exchange.refuse(rejected))
      return
    }
    const given = ctx.body(validator)
    const fault = engine.faultFor(ctx, true, given.sim_fault)
    exchange.run(fault, () => {
      const refusal = rejection(engine, given)
      if (refusal !== null) {
        exchange.refuse(refusal)
        return
      }
      const request = understood(engine.personality, given)
      const script = engine.answers.take(path)
      if (script?.body !== undefined) {
        exchange.deliver(scriptedBody(script.body), request.stream ?? false, fault)
        return
      }
      const made = generate(request, engine.setting(request.model, idPrefix, ctx.startedAtMs, script))
      exchange.deliver(personalAnswer(engine.personality, given, made), request.stream ?? false, fault)
    })
  }

  return simRoute(engine, { method: 'POST', path, summary, body: validator.schema }, (ctx) => {
    const isFixed = responses !== null && (engine.config.fixedResponse || ctx.header('x-sim-fixed') === '1')
    guard(engine, ctx, true, isFixed ? (exchange) => serveFixed(exchange, responses) : serve)
  })
}

const DEAD: Refusal = { status: 500, message: 'the engine has died' }

/** Why the engine rejects a request; null if it serves it. */
function rejection({ personality, isDead, config }: Engine, request: object): Refusal | null {
  if (isDead) return personality.dead ?? DEAD
  return refusalOf(personality, request, config.models)
}

/** Routes about the engine: those of all, and those that its kind has or rejects. */
function infoRoutes(engine: Engine): RouteDefinition[] {
  const { config, stats, personality } = engine
  const server = (exchange: Exchange) => exchange.json(200, serverInfo(config, stats.load()))
  const model = (exchange: Exchange) => exchange.json(200, modelInfo(config))
  const all = [
    infoRoute(engine, 'GET', '/health', 'Liveness; no key needed', (exchange) =>
      engine.isDead ? exchange.json(503, { status: 'unavailable' }) : exchange.text(200, 'OK'),
    ),
    infoRoute(engine, 'GET', '/health_generate', 'Health by a trial generation', (exchange) =>
      exchange.text(200, 'OK'),
    ),
    infoRoute(engine, 'GET', '/v1/models', 'Models', (exchange) =>
      exchange.json(200, modelList(config, engine.createdSec)),
    ),
    infoRoute(engine, 'GET', '/metrics', 'Prometheus text; no key needed', (exchange) =>
      exchange.text(200, metricsText(config, stats)),
    ),
    infoRoute(engine, 'POST', '/flush_cache', 'Clear the prefix cache', (exchange) => {
      engine.batch?.kv.flush()
      exchange.text(200, 'Cache flushed.\n')
    }),
    infoRoute(engine, 'GET', '/version', 'Version', (exchange) => exchange.json(200, { version: VERSION })),
    infoRoute(engine, 'GET', '/v1/loads', 'Load report', (exchange) => exchange.json(200, loadReport(stats))),
    infoRoute(engine, 'GET', '/props', 'Properties', (exchange) => exchange.json(200, props(config))),
    infoRoute(engine, 'GET', '/slots', 'Slots', (exchange) => exchange.json(200, slots(stats))),
    infoRoute(engine, 'GET', '/server_info', 'Server facts', server),
    infoRoute(engine, 'GET', '/get_server_info', 'Server facts, older name', server),
    infoRoute(engine, 'GET', '/model_info', 'Model facts', model),
    infoRoute(engine, 'GET', '/get_model_info', 'Model facts, older name', model),
  ]
  const { routes, rejects } = personality
  return all.filter(({ path }) => ALWAYS.has(path) || routes.has(path) || rejects?.has(path))
}

const ALWAYS: ReadonlySet<string> = new Set(['/health', '/v1/models'])

/** Public even if a key is set, as in real engines. */
const KEYLESS_PATHS: ReadonlySet<string> = new Set(['/health', '/metrics'])

function infoRoute(
  engine: Engine,
  method: 'GET' | 'POST',
  path: string,
  summary: string,
  answer: (exchange: Exchange) => void,
): RouteDefinition {
  return simRoute(engine, { method, path, summary }, (ctx) =>
    guard(engine, ctx, false, (exchange) => {
      const refusal = engine.personality.rejects?.get(path)
      exchange.run(engine.faultFor(ctx, false, null), () =>
        refusal === undefined ? answer(exchange) : exchange.refuse(refusal),
      )
    }),
  )
}

/** Opens the exchange, checks the key, and reports exceptions. */
function guard(
  engine: Engine,
  ctx: RequestContext,
  isServing: boolean,
  serve: (exchange: Exchange) => void,
): void {
  const exchange = new Exchange(engine, ctx, isServing)
  try {
    const isOpen = ctx.path === '/v1/models' && engine.personality.listsWithoutKey === true
    if (!isOpen && !KEYLESS_PATHS.has(ctx.path)) engine.checkKey(ctx)
    serve(exchange)
  } catch (error) {
    exchange.fail(error)
  }
}

function errorFormatOf({ errorBody }: Personality): ErrorFormat {
  if (errorBody === undefined) return apiErrorFormat
  const body = ({ status, message, code }: GatewayError) => errorBody({ status, message }, code)
  const lastEvents = (error: GatewayError) => `data: ${JSON.stringify(body(error))}\n\n`
  return { ...apiErrorFormat, body, lastEvents }
}

function simRoute(
  { personality }: Engine,
  facts: { method: 'GET' | 'POST'; path: string; summary: string; body?: TSchema },
  handler: (ctx: RequestContext) => void,
): RouteDefinition {
  const { method, path, summary, body } = facts
  return {
    method,
    path,
    access: 'public',
    errors: errorFormatOf(personality),
    headers: HEADERS,
    handler,
    docs: {
      summary,
      tag: 'sim',
      body,
      responses: { 200: { description: 'As the simulated runtime responds.' } },
    },
  }
}
