/** Supported engines, in the order in which an unknown worker is probed. */
import type { RuntimeType } from '#kernel'
import { listedModels, type WorkerQueries } from '../worker-queries.ts'
import type { Engine } from './engine.ts'
import { infinity } from './infinity.ts'
import { llamacpp } from './llamacpp.ts'
import { mlx } from './mlx.ts'
import { sglang } from './sglang.ts'
import { transformers } from './transformers.ts'
import { trtllm } from './trtllm.ts'
import { vllm } from './vllm.ts'

export const ENGINES: readonly Engine[] = [transformers, vllm, llamacpp, sglang, trtllm, mlx, infinity]

const UNSPECIFIED: Engine = { name: 'unspecified', owners: [], loadSources: ['loads'] }
/** A cloud service, which reports no load. */
const EXTERNAL: Engine = { name: 'external', owners: [], loadSources: [] }

const byName: ReadonlyMap<RuntimeType, Engine> = new Map(
  [...ENGINES, EXTERNAL].map((engine) => [engine.name, engine]),
)

/** Values of `runtime_type` beside `unspecified`. */
export const RUNTIMES: readonly RuntimeType[] = [...byName.keys()]

export function engineOf(name: RuntimeType): Engine {
  return byName.get(name) ?? UNSPECIFIED
}

/** The engine of a local worker by the owner of its models, then by its routes. */
export async function recognizeEngine(queries: WorkerQueries): Promise<Engine> {
  const [first] = listedModels(await queries.find('/v1/models'))
  const owner = typeof first?.owned_by === 'string' ? first.owned_by.toLowerCase() : ''
  const owning = ENGINES.find(({ owners }) => owners.includes(owner))
  if (owning !== undefined) return owning
  for (const engine of ENGINES) if ((await engine.recognizes?.(queries)) === true) return engine
  return UNSPECIFIED
}
