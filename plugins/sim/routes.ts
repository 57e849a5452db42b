/** The engine's HTTP surface: serving, discovery and probes. Control of the simulation is in control-routes.ts. */
import {
  apiErrorFormat,
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
import { loadReport, metricsText, modelInfo, modelList, serverInfo, VERSION } from './engine-info.ts'
import { Exchange } from './exchange.ts'
import { generateNative } from './generate.ts'
import { fixedResponses, type Generation, type Setting, scriptedBody, wholeOnly } from './generation.ts'
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
  const spoken = engine.config.responses ? responsesRoutes(engine) : []
  return [
    ...servingRoutes(engine),
    ...spoken,
    ...infoRoutes(engine),
    ...runtimeRoutes(engine),
    ...controlRoutes(engine),
  ]
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

function responsesRoutes(engine: Engine): RouteDefinition[] {
  const path = '/v1/responses'
  return [
    servingRoute(engine, {
      path,
      summary: 'Response; nothing is stored',
      validator: validators.responses,
      idPrefix: 'resp_',
      generate: generateResponse,
      fixed: { input: 'Say something.' },
    }),
    infoRoute(engine, 'GET', '/openapi.json', 'Routes that gateways detect API formats by', (exchange) =>
      exchange.json(200, { openapi: '3.1.0', paths: { [path]: { post: {} } } }),
    ),
  ]
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
    const request = ctx.body(validator)
    const fault = engine.faultFor(ctx, true, request.sim_fault)
    exchange.run(fault, () => {
      const script = engine.answers.take(path)
      const generation =
        script?.body !== undefined
          ? scriptedBody(script.body)
          : generate(request, engine.setting(request.model, idPrefix, ctx.startedAtMs, script))
      exchange.deliver(generation, request.stream ?? false, fault)
    })
  }

  return simRoute({ method: 'POST', path, summary, body: validator.schema }, (ctx) => {
    const isFixed = responses !== null && (engine.config.fixedResponse || ctx.header('x-sim-fixed') === '1')
    guard(engine, ctx, true, isFixed ? (exchange) => serveFixed(exchange, responses) : serve)
  })
}

/** Routes that every runtime has. */
function infoRoutes(engine: Engine): RouteDefinition[] {
  const { config, stats } = engine
  return [
    infoRoute(engine, 'GET', '/health', 'Liveness; no key needed', (exchange) => exchange.text(200, 'OK')),
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
  ]
}

/** Routes by which gateways detect the runtime. */
function runtimeRoutes(engine: Engine): RouteDefinition[] {
  const { config, stats } = engine
  if (config.runtime === 'vllm') {
    return [
      infoRoute(engine, 'GET', '/version', 'Version', (exchange) => exchange.json(200, { version: VERSION })),
    ]
  }
  const loads = infoRoute(engine, 'GET', '/v1/loads', 'Load report', (exchange) =>
    exchange.json(200, loadReport(stats)),
  )
  if (config.runtime !== 'sglang') return [loads]
  const server = (exchange: Exchange) => exchange.json(200, serverInfo(config, stats.load()))
  const model = (exchange: Exchange) => exchange.json(200, modelInfo(config))
  return [
    loads,
    infoRoute(engine, 'GET', '/server_info', 'Server facts', server),
    infoRoute(engine, 'GET', '/get_server_info', 'Server facts, older name', server),
    infoRoute(engine, 'GET', '/model_info', 'Model facts', model),
    infoRoute(engine, 'GET', '/get_model_info', 'Model facts, older name', model),
  ]
}

/** Public even if a key is set, as in real engines. */
const KEYLESS_PATHS: ReadonlySet<string> = new Set(['/health', '/metrics'])

function infoRoute(
  engine: Engine,
  method: 'GET' | 'POST',
  path: string,
  summary: string,
  answer: (exchange: Exchange) => void,
): RouteDefinition {
  return simRoute({ method, path, summary }, (ctx) =>
    guard(engine, ctx, false, (exchange) => {
      exchange.run(engine.faultFor(ctx, false, null), () => answer(exchange))
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
    if (!KEYLESS_PATHS.has(ctx.path)) engine.checkKey(ctx)
    serve(exchange)
  } catch (error) {
    exchange.fail(error)
  }
}

function simRoute(
  facts: { method: 'GET' | 'POST'; path: string; summary: string; body?: TSchema },
  handler: (ctx: RequestContext) => void,
): RouteDefinition {
  const { method, path, summary, body } = facts
  return {
    method,
    path,
    access: 'public',
    errors: apiErrorFormat,
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
