/** Prepared answers for load tests: bytes made once per route and model, sent without looking at the prompt. */
import type { SimConfig } from './config.ts'
import type { Generation, StreamEvent } from './generation.ts'

/** Makes the answer that is then kept. */
export type PrepareAnswer = (model: string) => Generation

/** Models kept per route; clients that invent names do not fill the memory. */
const KEPT_MODELS = 64

export class FixedReplies {
  readonly #firstModel: string
  readonly #byModel = new Map<string, Generation>()
  readonly #prepare: PrepareAnswer

  constructor(config: SimConfig, prepare: PrepareAnswer) {
    this.#firstModel = config.models[0]
    this.#prepare = prepare
  }

  /** @param model as the request names it; null for the engine's first */
  find(model: string | null): Generation {
    const name = model ?? this.#firstModel
    const known = this.#byModel.get(name)
    if (known !== undefined) return known
    const made = freeze(this.#prepare(name))
    if (this.#byModel.size < KEPT_MODELS) this.#byModel.set(name, made)
    return made
  }
}

/** The same answer with all its bytes made. */
function freeze(generation: Generation): Generation {
  const body = Buffer.from(generation.body())
  const events: StreamEvent[] = []
  const source = generation.events()
  for (let next = source.next(); next.done !== true; next = source.next()) {
    const { tick, tokens, data } = next.value
    events.push({ tick, tokens, data: Buffer.from(data) })
  }
  return {
    prompts: generation.prompts,
    promptTokens: generation.promptTokens,
    completionTokens: generation.completionTokens,
    steps: generation.steps,
    cache: generation.cache,
    body: () => body,
    events: () => events.values(),
  }
}
