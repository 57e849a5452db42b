/** Speaks to engines in token ids: the internal request to a message for whichever engine was picked. */
import type {
  EngineAdapter,
  EngineAttempt,
  EngineConstraint,
  EngineReader,
  EngineSink,
  GenerationRequest,
  Logger,
  OutputParsersService,
  PreparedPrompt,
  Sampling,
  WorkerEntry,
} from '#kernel'
import { grpcErrors } from '../errors.ts'
import type { Ask, Runtime } from '../runtimes/runtime.ts'
import { findRuntime } from '../runtimes/runtime-table.ts'
import { GRPC_MODE } from '../wire/grpc-transport.ts'
import type { EngineCalls } from '../wire/sent-requests.ts'
import { GenerateReader } from './generate-reader.ts'
import type { EnginePrompt, PromptMaker } from './prompt.ts'

export interface EngineParts {
  readonly prompts: PromptMaker
  readonly parsers: OutputParsersService
  readonly defaults: SamplingDefaults
  readonly calls: EngineCalls
}

export class GrpcEngine implements EngineAdapter {
  readonly name = 'grpc'
  readonly #parts: EngineParts
  /** What was asked, for who reads the answer. */
  readonly #asked = new WeakMap<EngineAttempt, Asked>()

  constructor(parts: EngineParts) {
    this.#parts = parts
  }

  accepts(worker: WorkerEntry): boolean {
    return worker.connectionMode === GRPC_MODE && findRuntime(worker.runtimeType) !== undefined
  }

  prepare(request: GenerationRequest, model: string): Promise<PreparedPrompt> {
    return this.#parts.prompts.make(request, model)
  }

  requestFor(attempt: EngineAttempt) {
    const runtime = runtimeOf(attempt.worker)
    const asked = this.#ask(attempt, runtime)
    this.#asked.set(attempt, asked)
    const body = runtime.encodeGenerate(asked.ask)
    const takeBack = { path: runtime.paths.abort, body: runtime.encodeAbort(asked.ask.id) }
    this.#parts.calls.note(body, takeBack, { runtime, ask: asked.ask })
    return { method: 'POST', path: runtime.paths.generate, body }
  }

  read(attempt: EngineAttempt, sink: EngineSink): EngineReader {
    const { ask, name } = this.#asked.get(attempt) as Asked
    const runtime = runtimeOf(attempt.worker)
    return new GenerateReader(attempt, sink, {
      runtime,
      prompt: attempt.prepared as EnginePrompt,
      skipsSpecialTokens: ask.skipsSpecialTokens,
      constraintWaits: runtime.constraintWaits?.(ask.thinks, attempt.worker.labels) ?? false,
      sentStopIds: ask.stopTokenIds,
      prefilled: ask.prefilled,
      name,
    })
  }

  #ask(attempt: EngineAttempt, runtime: Runtime): Asked {
    const { request, worker } = attempt
    const prompt = attempt.prepared as EnginePrompt
    const { sampling: given } = request
    const name = nameOf(request)
    const id = name === null || prompt.isNamed ? attempt.id : name
    if (name !== null) prompt.isNamed = true
    const ask: Ask = {
      id,
      tokenIds: prompt.tokenIds,
      text: prompt.text,
      sampling: runtime.hasDefaults ? this.#parts.defaults.fill(given, worker) : given,
      kind: request.prompt.kind === 'chat' ? 'chat' : 'text',
      choices: request.choices,
      stream: attempt.stream,
      topLogprobs: request.topLogprobs,
      promptLogprobsFrom: request.promptLogprobsFrom ?? -1,
      logprobsOf: request.logprobsOf ?? [],
      prefilled: request.promptLogprobsFrom === undefined ? null : { promptLogprobs: null },
      stopTokenIds:
        runtime.stopStrings === 'ids-only'
          ? [...new Set([...prompt.stopTokenIds, ...prompt.stringStopIds])]
          : prompt.stopTokenIds,
      constraint: this.#constraint(prompt, runtime),
      skipsSpecialTokens: prompt.parser?.needsSpecialTokens !== true && (given.skipSpecialTokens ?? true),
      thinks: prompt.thinks,
      rank: worker.dataParallel?.rank ?? null,
    }
    check(ask, runtime)
    return { ask, name: name === null ? null : id }
  }

  #constraint({ constraint }: EnginePrompt, runtime: Runtime): EngineConstraint | null {
    if (constraint === null) return null
    const found = this.#parts.parsers.engineConstraint(runtime.name, constraint)
    if (found === null) throw grpcErrors.engine_lacks_parameter(runtime.name, constraint.kind)
    return found
  }
}

interface Asked {
  readonly ask: Ask
  /** Of the reply, where the client chose one. */
  readonly name: string | null
}

/** @throws engine_lacks_parameter (400) */
function check(ask: Ask, runtime: Runtime): void {
  const hasStops = ask.sampling.stop?.some((stop) => stop !== '') === true
  if (runtime.stopStrings === 'refuses' && hasStops)
    throw grpcErrors.engine_lacks_parameter(runtime.name, 'stop strings')
  if (ask.choices > runtime.maxChoices)
    throw grpcErrors.engine_lacks_parameter(runtime.name, `more than ${runtime.maxChoices} choice`)
  if (ask.logprobsOf.length > 0 && !runtime.tellsNamedLogprobs)
    throw grpcErrors.engine_lacks_parameter.with(
      { param: 'token_ids_logprob' },
      runtime.name,
      'token_ids_logprob',
    )
  const missing = runtime.lacks(ask)
  if (missing !== null) throw grpcErrors.engine_lacks_parameter(runtime.name, missing)
}

/** @throws engine_runtime_unknown (501) */
export function runtimeOf({ runtimeType }: Pick<WorkerEntry, 'runtimeType'>): Runtime {
  const runtime = findRuntime(runtimeType)
  if (runtime === undefined) throw grpcErrors.engine_runtime_unknown(runtimeType)
  return runtime
}

function nameOf({ carried }: GenerationRequest): string | null {
  const rid = carried?.get('rid')
  return typeof rid === 'string' && rid !== '' && rid.length <= 256 ? rid : null
}

export const DEFAULTS_LABEL = 'default_sampling_params_json'

const FIELDS = [
  ['temperature', 'temperature'],
  ['top_p', 'topP'],
  ['top_k', 'topK'],
  ['min_p', 'minP'],
  ['repetition_penalty', 'repetitionPenalty'],
] as const

export class SamplingDefaults {
  readonly #byWorker = new WeakMap<WorkerEntry, Sampling>()
  readonly #log: Logger

  constructor(log: Logger) {
    this.#log = log
  }

  /** The client's settings with the worker's defaults behind them. */
  fill(sampling: Sampling, worker: WorkerEntry): Sampling {
    let defaults = this.#byWorker.get(worker)
    if (defaults === undefined) {
      defaults = this.#read(worker)
      this.#byWorker.set(worker, defaults)
    }
    return defaults === NONE ? sampling : { ...defaults, ...sampling }
  }

  #read({ labels, url }: WorkerEntry): Sampling {
    const text = labels[DEFAULTS_LABEL] ?? ''
    if (text === '') return NONE
    try {
      const given = JSON.parse(text) as Record<string, unknown> | null
      const found = FIELDS.flatMap(([wire, own]) => {
        const value = given?.[wire]
        return typeof value === 'number' && Number.isFinite(value) ? [[own, value]] : []
      })
      return found.length === 0 ? NONE : (Object.fromEntries(found) as Sampling)
    } catch {
      this.#log.warn({ worker: url }, 'sampling defaults of an engine are not JSON; they are left aside')
      return NONE
    }
  }
}

const NONE: Sampling = Object.freeze({})
