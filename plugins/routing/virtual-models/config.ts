/** Settings of the virtual-models plugin. */
import { integer, type SettingProblem, type Static, Type } from '#kernel'
import { nullable } from '#shared'

/** Members of a body that are the client's, or that decide how its response is read. */
const FIXED_MEMBERS: ReadonlySet<string> = new Set([
  'model',
  'stream',
  'stream_options',
  'messages',
  'input',
  'prompt',
  'text',
  'system',
  'instructions',
])

/** Names appear in a response header. */
const NAME = String.raw`^[\x21-\x7e]+$`
const tokens = nullable(Type.Integer({ minimum: 1 }))
const penalty = nullable(Type.Number({ minimum: -2, maximum: 2 }))

/** Members of other names are not checked: each format and engine has its own. */
const Parameters = Type.Object(
  {
    temperature: nullable(Type.Number({ minimum: 0, maximum: 2 })),
    top_p: nullable(Type.Number({ minimum: 0, maximum: 1 })),
    top_k: nullable(Type.Integer({ minimum: -1 })),
    min_p: nullable(Type.Number({ minimum: 0, maximum: 1 })),
    frequency_penalty: penalty,
    presence_penalty: penalty,
    repetition_penalty: nullable(Type.Number({ minimum: 0, maximum: 2 })),
    seed: nullable(Type.Integer()),
    max_tokens: tokens,
    max_completion_tokens: tokens,
    max_output_tokens: tokens,
    min_tokens: nullable(Type.Integer({ minimum: 0 })),
    stop: nullable(Type.Union([Type.String(), Type.Array(Type.String())])),
    reasoning_effort: nullable(Type.String({ minLength: 1 })),
  },
  {
    default: {},
    additionalProperties: true,
    description:
      'Members of the body that replace those of the client, in the format of the client: `{ temperature: 0.2 }`. null removes one.',
  },
)

const targetMembers = {
  model: Type.String({
    minLength: 1,
    maxLength: 256,
    pattern: NAME,
    description: 'Model or alias of workers.',
  }),
  provider: Type.Optional(
    Type.String({ minLength: 1, description: 'Only workers of this provider, such as `openai`.' }),
  ),
  labels: Type.Record(Type.String({ minLength: 1 }), Type.String(), {
    default: {},
    description: 'Only workers with all of these labels.',
  }),
  parameters: Parameters,
}

const Fallback = Type.Object(targetMembers, { additionalProperties: false })

const Target = Type.Object(
  {
    ...targetMembers,
    weight: integer(
      { default: 1, min: 0, max: 1_000_000 },
      'Share of the requests, in proportion to the weights of the other targets; 0 takes none.',
    ),
  },
  { additionalProperties: false },
)

const VirtualModel = Type.Object(
  {
    targets: Type.Array(Target, {
      minItems: 1,
      maxItems: 64,
      description: 'One of them is chosen for each request, by weight.',
    }),
    fallbacks: Type.Array(Fallback, {
      default: [],
      maxItems: 16,
      description:
        'Tried in this order if the chosen target fails before the first byte of the response: no worker is available, or its attempts are used up.',
    }),
    fallbackOn: Type.Array(Type.Enum(['context_length']), {
      default: [],
      uniqueItems: true,
      description:
        'Refusals after which the next fallback is tried too. context_length: the prompt is longer than the context of the target. Default: none, because clients shorten a prompt that is refused, and a fallback may be more expensive.',
    }),
    choose: Type.Union([Type.Literal('weight'), Type.Literal('module')], {
      default: 'weight',
      description:
        'weight: by the weights of the targets. module: by the first WebAssembly module at OnPick that matches the name of the virtual model; by weight if there is none, or it makes no choice.',
    }),
    sticky: Type.Union([Type.Literal('none'), Type.Literal('tenant'), Type.Literal('session')], {
      default: 'none',
      description:
        'What keeps its target from request to request: nothing, the tenant, or the session that the header x-weir-routing-key names (requests without it are not sticky).',
    }),
  },
  { additionalProperties: false },
)

export const virtualModelsConfig = Type.Object(
  {
    models: Type.Record(Type.String({ pattern: NAME, maxLength: 256 }), VirtualModel, {
      default: {},
      description:
        'Virtual models by the name that clients send. A name that ends in `*` matches every name with that prefix; an exact name takes precedence, then the longest prefix. A name that is also a model of workers takes its place; targets always name models of workers.',
    }),
  },
  { additionalProperties: false },
)

export type VirtualModelsConfig = Static<typeof virtualModelsConfig>
export type VirtualModelConfig = Static<typeof VirtualModel>
export type TargetConfig = Static<typeof Fallback>

/** Checks that the schema cannot express. */
export function* virtualModelsProblems({ models }: VirtualModelsConfig): Generator<SettingProblem> {
  for (const [name, model] of Object.entries(models)) {
    const path = ['models', name]
    if (model.targets.every(({ weight }) => weight === 0))
      yield { path: [...path, 'targets'], text: 'must have a target with a weight above 0' }
    if (model.fallbackOn.length > 0 && model.fallbacks.length === 0)
      yield { path: [...path, 'fallbackOn'], text: 'needs fallbacks' }
    for (const list of ['targets', 'fallbacks'] as const)
      for (const [index, target] of model[list].entries())
        yield* targetProblems([...path, list, String(index)], name, target, models)
  }
}

function* targetProblems(
  path: readonly string[],
  name: string,
  { model, parameters }: TargetConfig,
  models: VirtualModelsConfig['models'],
): Generator<SettingProblem> {
  const other = model === name || !Object.hasOwn(models, model) ? undefined : models[model]
  if (other !== undefined && ![...other.targets, ...other.fallbacks].some((own) => own.model === model))
    yield {
      path: [...path, 'model'],
      text: `must be a model of workers; '${model}' is a virtual model, and those are not nested`,
    }
  for (const member of Object.keys(parameters))
    if (FIXED_MEMBERS.has(member))
      yield { path: [...path, 'parameters', member], text: 'cannot be set for a target' }
}
