/** Generation engine of gRPC workers: encodes requests for the picked engine and reads its responses. */
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
import type { EngineRequest, Runtime } from '../runtimes/runtime.ts'
import { findRuntime } from '../runtimes/runtime-table.ts'
import { GRPC_MODE } from '../wire/grpc-transport.ts'
import type { SentRequests } from '../wire/sent-requests.ts'
import { GenerateReader } from './generate-reader.ts'
import type { EnginePrompt, PromptBuilder } from './prompt.ts'

export interface EngineParts {
  readonly prompts: PromptBuilder
  readonly parsers: OutputParsersService
  readonly defaults: SamplingDefaults
  readonly calls: SentRequests
}

export class GrpcEngine implements EngineAdapter {
  readonly name = 'grpc'
  readonly #parts: EngineParts
  /** Sent requests, for reading their responses. */
  readonly #sent = new WeakMap<EngineAttempt, SentRequest>()

  constructor(parts: EngineParts) {
    this.#parts = parts
  }

  accepts(worker: WorkerEntry): boolean {
    return worker.connectionMode === GRPC_MODE && findRuntime(worker.runtimeType) !== undefined
  }

  async prepare(request: GenerationRequest, model: string): Promise<PreparedPrompt> {
    rejectOtherOutput(request)
    return this.#parts.prompts.make(request, model)
  }

  ignored({ sampling, carried, constraint }: GenerationRequest, { runtimeType }: WorkerEntry) {
    const { lacks = [] } = findRuntime(runtimeType) ?? {}
    return [
      ...lacks.filter((name) => sampling[name] !== undefined),
      ...[...(carried?.keys() ?? [])].filter((name) => !READ.has(name)),
      ...(constraint?.kind === 'json_schema' && constraint.description !== undefined
        ? ['json_schema.description']
        : []),
    ]
  }

  requestFor(attempt: EngineAttempt) {
    const runtime = runtimeOf(attempt.worker)
    const sent = this.#engineRequest(attempt, runtime)
    this.#sent.set(attempt, sent)
    const body = runtime.encodeGenerate(sent.engineRequest)
    this.#parts.calls.note(body, runtime, sent.engineRequest.id, sent.engineRequest)
    return { method: 'POST', path: runtime.paths.Generate, body }
  }

  read(attempt: EngineAttempt, sink: EngineSink): EngineReader {
    const { engineRequest, name } = this.#sent.get(attempt) as SentRequest
    const runtime = runtimeOf(attempt.worker)
    return new GenerateReader(attempt, sink, {
      runtime,
      prompt: attempt.prepared as EnginePrompt,
      skipsSpecialTokens: engineRequest.skipsSpecialTokens,
      constraintWaits: runtime.constraintWaits?.(engineRequest.thinks, attempt.worker.labels) ?? false,
      sentStopIds: engineRequest.stopTokenIds,
      prefilled: engineRequest.prefilled,
      name,
    })
  }

  #engineRequest(attempt: EngineAttempt, runtime: Runtime): SentRequest {
    const { request, worker } = attempt
    const prompt = attempt.prepared as EnginePrompt
    const { sampling: given } = request
    const name = clientRequestId(request)
    const id = name === null || prompt.isNamed ? attempt.id : name
    if (name !== null) prompt.isNamed = true
    const engineRequest: EngineRequest = {
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
    check(engineRequest, runtime)
    return { engineRequest, name: name === null ? null : id }
  }

  #constraint({ constraint }: EnginePrompt, runtime: Runtime): EngineConstraint | null {
    if (constraint === null) return null
    const found = this.#parts.parsers.engineConstraint(runtime.name, constraint)
    if (found === null) throw grpcErrors.engine_lacks_parameter(runtime.name, constraint.kind)
    return found
  }
}

/** Carried members that the prompt, the parser or the request have. */
const READ: ReadonlySet<string> = new Set(['add_generation_prompt', 'documents', 'rid', 'separate_reasoning'])

interface SentRequest {
  readonly engineRequest: EngineRequest
  /** Response id, if the client chose one. */
  readonly name: string | null
}

/** @throws audio_output_not_supported, unsupported_output_modality (400) */
function rejectOtherOutput({ carried }: GenerationRequest): void {
  if (carried?.get('return_audio') === true)
    throw grpcErrors.audio_output_not_supported.with({ param: 'return_audio' })
  const modalities = carried?.get('modalities')
  const other = Array.isArray(modalities) ? modalities.find((one) => one !== 'text') : undefined
  if (other !== undefined)
    throw grpcErrors.unsupported_output_modality.with({ param: 'modalities' }, String(other))
}

/** @throws engine_lacks_parameter (400) */
function check(engineRequest: EngineRequest, runtime: Runtime): void {
  if (engineRequest.choices > runtime.maxChoices)
    throw grpcErrors.engine_lacks_parameter(runtime.name, `more than ${runtime.maxChoices} choice`)
  if (engineRequest.logprobsOf.length > 0 && !runtime.reportsNamedLogprobs)
    throw grpcErrors.engine_lacks_parameter.with(
      { param: 'token_ids_logprob' },
      runtime.name,
      'token_ids_logprob',
    )
  const missing = runtime.unsupportedParameter(engineRequest)
  if (missing !== null) throw grpcErrors.engine_lacks_parameter(runtime.name, missing)
}

/** @throws engine_runtime_unknown (501) */
function runtimeOf({ runtimeType }: Pick<WorkerEntry, 'runtimeType'>): Runtime {
  const runtime = findRuntime(runtimeType)
  if (runtime === undefined) throw grpcErrors.engine_runtime_unknown(runtimeType)
  return runtime
}

function clientRequestId({ carried }: GenerationRequest): string | null {
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

  /** The client's settings, completed by the defaults of the worker. */
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
      this.#log.warn({ worker: url }, 'sampling defaults of engine ignored: invalid JSON')
      return NONE
    }
  }
}

const NONE: Sampling = Object.freeze({})
