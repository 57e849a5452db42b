/** Stop strings where the service takes only some: the worker is told those, the gateway looks for the others. */
import type { EngineAttempt, WorkerEntry } from '#kernel'

/** Stop strings that the vendor's own service takes. */
const MAX_OPENAI_STOPS = 4
const NONE: readonly string[] = []

/** The vendor's own service, which refuses what engines add to the format. */
export function isOpenAi({ provider }: WorkerEntry): boolean {
  return provider === 'openai'
}

/** Those that the vendor's own service is told. */
export function toldStops(stops: readonly string[]): readonly string[] {
  return stops.slice(0, MAX_OPENAI_STOPS)
}

/** Those that it is not told; completions are told all. */
export function untoldStops({ request, worker }: EngineAttempt): readonly string[] {
  if (request.prompt.kind !== 'chat' || !isOpenAi(worker)) return NONE
  return request.sampling.stop?.slice(MAX_OPENAI_STOPS) ?? NONE
}
