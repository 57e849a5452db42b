/** The models of a cloud service: its list, with dated names of one model put together. */
import type { ModelCard } from '#kernel'
import { type Inquiry, modelEntries } from './inquiry.ts'
import { type Capability, DEFAULT_CAPABILITIES, normalizeCard } from './model-card.ts'

const DATE_SUFFIX = /[-@](\d{4}-\d{2}-\d{2}|\d{8}|\d{4})$/

/** Words in a model's name that tell what it is for; first match wins. */
const CAPABILITIES_OF_NAME: readonly (readonly [pattern: RegExp, capabilities: readonly Capability[]])[] = [
  [/embed/, ['embeddings']],
  [/rerank/, ['rerank']],
  [/moderation/, ['moderation']],
  [/dall-e|image|imagen/, ['image_gen']],
  [/whisper|tts|transcribe|audio|realtime/, ['audio']],
]

/** Headers of services that do not take a bearer token. @source routing facts 2.3 */
export function providerHeaders(provider: string | null, apiKey: string): string[] | null {
  return provider === 'anthropic' ? ['x-api-key', apiKey, 'anthropic-version', '2023-06-01'] : null
}

/**
 * @returns an empty list, which is a wildcard, when the service lists nothing
 * @throws model_discovery_failed when it cannot be asked
 */
export async function discoverExternal(inquiry: Inquiry): Promise<readonly ModelCard[]> {
  const entries = modelEntries(await inquiry.require('/v1/models'))
  return groupDated(entries.map((entry) => entry.id.replace(/^models\//, '')))
}

/** One card per model: the shortest name is its id, the others are aliases. @source routing facts 2.3 */
export function groupDated(ids: readonly string[]): readonly ModelCard[] {
  const groups = Map.groupBy(new Set(ids), (id) => id.replace(DATE_SUFFIX, ''))
  return [...groups.values()].map((names) => {
    const [id, ...aliases] = names.toSorted((a, b) => a.length - b.length || (a < b ? -1 : 1))
    return normalizeCard({ id, aliases, model_type: [...capabilitiesOf(id)] })
  })
}

function capabilitiesOf(id: string): readonly Capability[] {
  return CAPABILITIES_OF_NAME.find(([pattern]) => pattern.test(id))?.[1] ?? DEFAULT_CAPABILITIES
}
