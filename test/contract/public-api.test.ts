/** The public API: its names are few, documented, and have the types that plugin authors rely on (checked by the compiler). */
import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, expectTypeOf, test } from 'vitest'
import type * as api from '../../plugins/public.ts'
import * as values from '../../plugins/public.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const read = (file: string) => readFileSync(ROOT + file, 'utf8')

/** The libraries document these. */
const OF_LIBRARIES = new Set(['Static', 'TSchema'])
const names = [...read('plugins/public.ts').matchAll(/^export (?:type )?\{([^}]+)\}/gm)]
  .flatMap(([, list]) => list.split(','))
  .map((name) => name.replace(/\btype\b/, '').trim())
  .filter((name) => name !== '')

test('it has at most 150 names', () => {
  expect(names.length).toBeGreaterThan(100)
  expect(names.length).toBeLessThanOrEqual(150)
  expect(Object.keys(values).filter((name) => !names.includes(name))).toEqual([])
})

test('every name has a docstring', () => {
  const sources = globSync(['kernel/**/*.ts', 'plugins/shared/**/*.ts'], { cwd: ROOT }).map(read)
  const isDocumented = (name: string) => {
    const declaration = new RegExp(
      `\\*/\\nexport (?:abstract |async )?(?:interface|type|class|function|const) ${name}\\b`,
    )
    return sources.some((source) => declaration.test(source))
  }
  expect(names.filter((name) => !OF_LIBRARIES.has(name) && !isDocumented(name))).toEqual([])
})

test('every name has a type test', () => {
  const tests = readFileSync(fileURLToPath(import.meta.url), 'utf8')
  expect(names.filter((name) => !new RegExp(`\\b(api|values)\\.${name}\\b`).test(tests))).toEqual([])
})

describe('types', () => {
  test('plugins', () => {
    const config = values.Type.Object({ limit: values.Type.Integer({ default: 3 }) })
    type Config = api.Static<typeof config>
    expectTypeOf<Config>().toEqualTypeOf<{ limit: number }>()
    expectTypeOf(config).toExtend<api.TSchema>()
    const plugin = values.definePlugin({
      manifest: { name: 'example', version: '1.0.0', description: 'An example.', config },
      register: (host, given) => {
        expectTypeOf(host).toEqualTypeOf<api.Host>()
        expectTypeOf(given).toEqualTypeOf<Config>()
        return { start() {}, async stop() {} }
      },
    })
    expectTypeOf(plugin).toExtend<api.Plugin<typeof config>>()
    expectTypeOf<api.Plugin['manifest']>().toEqualTypeOf<api.PluginManifest>()
    expectTypeOf<api.PluginLifecycle['start']>().toEqualTypeOf<(() => void | Promise<void>) | undefined>()
    expectTypeOf<api.PluginManifest['flags']>().toEqualTypeOf<readonly object[] | undefined>()
    expectTypeOf<api.ConfigFlag>().toExtend<object>()
    expectTypeOf<api.SettingProblem>().toHaveProperty('text').toEqualTypeOf<string>()
    expectTypeOf<api.Host['kernelConfig']>().toEqualTypeOf<api.KernelConfig>()
    expectTypeOf<api.Host['log']>().toEqualTypeOf<api.Logger>()
    expectTypeOf<api.Host['outages']>().returns.toEqualTypeOf<readonly api.Outage[]>()
    expectTypeOf<api.Host['listen']>().toEqualTypeOf<(options: api.ListenOptions) => Promise<api.Listener>>()
    expectTypeOf<api.Host['readiness']>().parameter(1).toEqualTypeOf<api.ReadinessOptions | undefined>()
  })

  test('services, commands, replicas and topics', () => {
    const service = values.token<{ of(tenant: string): string }>('tags')
    const command = values.defineCommand<{ tag: string }, number>('tags.set')
    const replica = values.defineReplica<readonly string[]>('tags.list', [])
    const topic = values.defineTopic<{ id: string }>('tags.changed')
    expectTypeOf(service).toExtend<api.Token<{ of(tenant: string): string }>>()
    expectTypeOf(command).toEqualTypeOf<api.CommandToken<{ tag: string }, number>>()
    expectTypeOf(replica).toEqualTypeOf<api.ReplicaToken<readonly string[]>>()
    expectTypeOf(topic).toEqualTypeOf<api.TopicToken<{ id: string }>>()
    const use = (host: api.Host) => ({
      service: host.use(service),
      result: host.command(command, { tag: 'gold' }),
      view: host.replica(replica),
      topic: host.topic(topic),
    })
    expectTypeOf(use).returns.toEqualTypeOf<{
      service: { of(tenant: string): string }
      result: Promise<number>
      view: api.ReplicaView<readonly string[]>
      topic: api.Topic<{ id: string }>
    }>()
  })

  test('routes and requests', () => {
    const body = values.defineValidator(values.Type.Object({ name: values.Type.String() }))
    expectTypeOf(body).toExtend<api.Validator<{ name: string }>>()
    expectTypeOf<api.FieldProblem>().toExtend<object>()
    const route: api.RouteDefinition = {
      method: 'POST',
      path: '/names',
      access: 'api',
      errors: values.apiErrorFormat,
      docs: { summary: 'Add a name', tag: 'names', responses: { 200: { description: 'The name' } } },
      handler: (ctx) => {
        expectTypeOf(ctx).toEqualTypeOf<api.RequestContext>()
        ctx.json(200, { name: ctx.body(body).name })
      },
    }
    expectTypeOf(route).toExtend<api.RouteFacts>()
    expectTypeOf(route.docs).toEqualTypeOf<api.RouteDocs>()
    expectTypeOf(route.method).toEqualTypeOf<api.Method>()
    expectTypeOf(route.access).toEqualTypeOf<api.Access>()
    expectTypeOf<api.RequestContext>().toExtend<api.RequestFacts>()
    expectTypeOf<api.RequestContext['stream']>().parameter(2).toEqualTypeOf<api.StreamOptions | undefined>()
    expectTypeOf<api.RequestContext['sse']>().returns.toEqualTypeOf<api.StreamWriter>()
    expectTypeOf<api.RequestContext['flow']>().toEqualTypeOf<api.FlowControl>()
    expectTypeOf<api.RequestContext['usage']>().toEqualTypeOf<api.TokenUsage | null>()
    expectTypeOf<api.Host['slot']>().returns.toExtend<api.RequestSlot<unknown>>()
    expectTypeOf(values.messageSocket).toEqualTypeOf<
      (definition: api.MessageSocketDefinition) => api.SocketRouteDefinition
    >()
    expectTypeOf<api.Host['detached']>().toEqualTypeOf<(work: api.DetachedWork) => api.Detached>()
    expectTypeOf<api.Detached['done']>().resolves.toEqualTypeOf<api.DetachedOutcome>()
    expectTypeOf<api.Host['background']>().parameter(0).toEqualTypeOf<Promise<unknown> | api.BackgroundWork>()
  })

  test('errors', () => {
    const errors = values.defineErrors('example', {
      name_too_long: { kind: 'bad_request', source: 'client', text: (limit: number) => `at most ${limit}` },
    })
    expectTypeOf(errors.name_too_long).toEqualTypeOf<api.ErrorMaker<[limit: number]>>()
    expectTypeOf(errors.name_too_long).returns.toEqualTypeOf<values.GatewayError>()
    expectTypeOf(errors.name_too_long.with).parameter(0).toEqualTypeOf<api.ErrorOptions>()
    expectTypeOf(values.retryAfter).toEqualTypeOf<(seconds: number) => api.ErrorOptions>()
    expectTypeOf<'bad_request'>().toExtend<api.ErrorKind>()
    expectTypeOf(values.apiErrorFormat).toEqualTypeOf<api.ErrorFormat>()
    expectTypeOf(values.adminErrorFormat).toEqualTypeOf<api.ErrorFormat>()
    expectTypeOf<api.StreamOptions['encodeError']>().toEqualTypeOf<api.ErrorEncoder | undefined>()
  })

  test('hooks', () => {
    type Hooks = api.HookSignatures
    expectTypeOf<keyof Hooks>().toEqualTypeOf<api.HookName>()
    expectTypeOf<api.Host['hook']>().parameter(2).toEqualTypeOf<api.HookOptions | undefined>()
    expectTypeOf<
      Exclude<Awaited<ReturnType<Hooks['onRequest']>>, undefined | void>
    >().toEqualTypeOf<api.WholeResponse>()
    expectTypeOf<Hooks['onUpstreamRequest']>().parameter(1).toEqualTypeOf<api.OutgoingAttempt>()
    expectTypeOf<Hooks['onResponse']>().parameter(1).toEqualTypeOf<api.IncomingResponse>()
    expectTypeOf<Hooks['onAttempt']>().parameter(1).toEqualTypeOf<api.AttemptReport>()
    expectTypeOf<api.AttemptReport['candidates']>().toEqualTypeOf<readonly api.CandidateReport[] | null>()
    expectTypeOf<Hooks['onGeneration']>().parameter(1).toEqualTypeOf<api.OpeningGeneration>()
    expectTypeOf<api.GenerationAnswer>().toEqualTypeOf<readonly api.GenerationEvent[]>()
    expectTypeOf<Hooks['onText']>().parameter(1).toEqualTypeOf<api.TextStream>()
    expectTypeOf<api.TextEditor>().toExtend<Exclude<ReturnType<Hooks['onText']>, null | undefined>>()
    expectTypeOf<Hooks['onPromptText']>().parameter(1).toEqualTypeOf<readonly api.PromptText[]>()
  })

  test('callers', () => {
    expectTypeOf(values.Auth).toExtend<api.Token<api.AuthService>>()
    expectTypeOf<api.AuthService['check']>().parameter(1).toEqualTypeOf<api.Credentials>()
    expectTypeOf<api.AuthService['recheck']>().returns.toEqualTypeOf<api.Identity>()
    expectTypeOf(values.tenantOf).returns.toEqualTypeOf<string>()
    expectTypeOf(values.mayUseModel).returns.toEqualTypeOf<boolean>()
  })

  test('calls and policies', () => {
    expectTypeOf<api.Host['upstream']>().toEqualTypeOf<api.Upstream>()
    expectTypeOf<api.Upstream['open']>().toEqualTypeOf<
      (call: api.Call, handler: api.CallHandler) => api.OpenCall
    >()
    expectTypeOf<api.Upstream['ask']>().toEqualTypeOf<
      (ctx: api.RequestContext, question: api.ModelQuestion) => Promise<api.ModelAnswer>
    >()
    expectTypeOf<api.Upstream['joinRelay']>().parameter(1).toEqualTypeOf<api.RelayOptions>()
    expectTypeOf<api.RelayOptions['format']>().toEqualTypeOf<api.ResponseFormat | undefined>()
    expectTypeOf<api.ResponseFormat['observe']>().returns.toEqualTypeOf<api.ResponseObserver>()
    expectTypeOf<api.ResponseObserver['end']>().returns.toEqualTypeOf<api.ObservedEnd>()
    const make: api.PolicyFactory = ({ random }: api.PolicyParts): api.Policy => ({
      name: 'first',
      needsBody: false,
      pick: ({ length }: api.CandidateView, _request: api.PickRequest) => Math.floor(random() * length),
    })
    expectTypeOf<Parameters<api.Host['policy']>>().toEqualTypeOf<
      [name: string, make: typeof make, options?: api.PolicyOptions]
    >()
  })

  test('generations', () => {
    expectTypeOf(values.Generations).toExtend<api.Token<api.Generations>>()
    expectTypeOf<api.Generations['open']>().parameter(1).toEqualTypeOf<api.GenerationRequest>()
    expectTypeOf<api.Generations['open']>().returns.toEqualTypeOf<api.Generation>()
    expectTypeOf<api.Generations['collect']>().returns.resolves.toEqualTypeOf<api.GeneratedAnswer>()
    expectTypeOf<api.GeneratedAnswer['choices'][number]>().toExtend<api.GeneratedChoice>()
    expectTypeOf<api.Generations['addEngine']>().parameter(0).toEqualTypeOf<api.EngineAdapter>()
    expectTypeOf<api.EngineAdapter['read']>().parameters.toEqualTypeOf<[api.EngineAttempt, api.EngineSink]>()
    expectTypeOf<api.EngineAdapter['read']>().returns.toEqualTypeOf<api.EngineReader>()
    expectTypeOf<api.GenerationListener>().toExtend<object>()
    expectTypeOf<api.GenerationEvent['type']>().toExtend<string>()
    expectTypeOf<
      Extract<api.GenerationEvent, { type: 'choice_done' }>['reason']
    >().toEqualTypeOf<api.FinishReason>()
    expectTypeOf<
      Extract<api.GenerationEvent, { type: 'finished' }>['usage']
    >().toEqualTypeOf<api.GenerationUsage | null>()
    expectTypeOf<Extract<api.GenerationEvent, { type: 'text' }>['logprobs']>().toEqualTypeOf<
      readonly api.TokenLogprob[] | null | undefined
    >()
    expectTypeOf(values.Embeddings.name).toEqualTypeOf<string>()
    const request = {
      tools: [{ type: 'function', function: { name: 'look' } }] satisfies readonly api.ChatTool[],
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: null, tool_calls: [] satisfies readonly api.ChatToolCall[] },
        { role: 'user', content: [{ type: 'text', text: 'Hi' }] satisfies readonly api.ContentPart[] },
      ] satisfies readonly api.ChatMessage[],
      toolChoice: { mode: 'auto' } satisfies api.ToolChoice,
      constraint: { kind: 'json_object' } satisfies api.OutputConstraint,
      sampling: { maxTokens: 3 } satisfies api.Sampling,
      reasoning: { effort: 'low' } satisfies api.ReasoningOptions,
    }
    expect(request.messages).toHaveLength(3)
  })

  test('readers of answers', () => {
    expectTypeOf(values.AnswerReader).instance.toExtend<api.EngineReader>()
    expectTypeOf<values.EventAnswerReader>().toExtend<api.EngineReader>()
    expectTypeOf(values.WholeAnswerReader).instance.toExtend<api.EngineReader>()
    expectTypeOf(values.readAnswerObject).returns.toEqualTypeOf<api.JsonObject>()
    expectTypeOf(values.errorOfEvent).parameter(1).toEqualTypeOf<string | null>()
    expectTypeOf(values.readEvent).parameter(0).toEqualTypeOf<Buffer>()
    expect(values.writeEvent({ name: null, data: '{}' })).toBe('data: {}\n\n')
  })

  test('protocols of workers', () => {
    expectTypeOf(values.WorkerTableReplica).toExtend<
      api.ReplicaToken<{ readonly workers: readonly api.WorkerEntry[] }>
    >()
    expectTypeOf(values.KvEvents).toExtend<api.Token<{ covers(worker: api.WorkerEntry): boolean }>>()
    expectTypeOf<Parameters<api.Transport['open']>>().toExtend<
      [api.WorkerEntry, api.UpstreamRequest, object, api.UpstreamHandler]
    >()
    expectTypeOf<api.Transport['open']>().returns.toEqualTypeOf<api.Exchange>()
    expectTypeOf<api.UpstreamRequest['headers']>().toEqualTypeOf<api.HeaderList>()
    expectTypeOf<api.UpstreamHandler['onResponseError']>()
      .parameter(0)
      .toEqualTypeOf<values.UpstreamFailure>()
    expectTypeOf<values.UpstreamFailure['kind']>().toEqualTypeOf<api.UpstreamFailureKind>()
    expectTypeOf<api.WorkerControl>().toExtend<Parameters<api.Host['workerControl']>[0]>()
    expectTypeOf<api.WorkerControl['probe']>().parameter(0).toExtend<api.WorkerTarget>()
    expectTypeOf<Awaited<ReturnType<api.WorkerControl['describe']>>>().toEqualTypeOf<api.WorkerDescription>()
  })

  test('stores, metrics, threads, JSON', () => {
    expectTypeOf(values.Store).toExtend<api.Token<api.StoreService>>()
    expectTypeOf(values.SharedStore).toExtend<api.Token<api.StoreService>>()
    expectTypeOf<api.Collection<number>['read']>().returns.resolves.toEqualTypeOf<
      api.StoredRecord<number> | undefined
    >()
    expectTypeOf<api.Host['metrics']>().toEqualTypeOf<api.Metrics>()
    expectTypeOf<
      ReturnType<ReturnType<api.Metrics['counter']>['labels']>
    >().toEqualTypeOf<api.CounterHandle>()
    expectTypeOf<ReturnType<ReturnType<api.Metrics['gauge']>['labels']>>().toEqualTypeOf<api.GaugeHandle>()
    expectTypeOf<
      ReturnType<ReturnType<api.Metrics['histogram']>['labels']>
    >().toEqualTypeOf<api.HistogramHandle>()
    expectTypeOf(values.openTaskPool).parameter(1).toEqualTypeOf<api.TaskPoolOptions>()
    expectTypeOf(values.openTaskPool).returns.toEqualTypeOf<api.TaskPool>()
    expect(values.isObject({})).toBe(true)
  })
})
