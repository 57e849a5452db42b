/** The models of a cloud service: its list, with dated names of one model put together. */
import type { ModelCard } from '#kernel'
import { type Capability, DEFAULT_CAPABILITIES } from './capabilities.ts'
import { type Info, type Inquiry, modelEntries } from './inquiry.ts'

const DATE_SUFFIX = /[-@](\d{4}-\d{2}-\d{2}|\d{8}|\d{4})$/

/** Words in a model's name that tell what it is for; first match wins. */
const CAPABILITIES_OF_NAME: readonly (readonly [pattern: RegExp, capabilities: readonly Capability[]])[] = [
  [/embed/, ['embeddings']],
  [/rerank/, ['rerank']],
  [/moderation/, ['moderation']],
  [/dall-e|image|imagen/, ['image_gen']],
  [/whisper|tts|transcribe|audio|realtime/, ['audio']],
]

/**
 * @returns an empty list, which is a wildcard, when the service lists nothing
 * @throws model_discovery_failed when it cannot be asked
 */
export async function discoverExternal(inquiry: Inquiry): Promise<readonly ModelCard[]> {
  // Some services have the list beside /v1, or beside what they have in its place.
  const list = (await inquiry.require('/v1/models')) ?? (await inquiry.find('/models'))
  return groupDated(modelNames(list).map((name) => name.replace(/^models\//, '')))
}

/** Names in a list of the common form, or of gemini's own. */
function modelNames(list: Info | null): readonly string[] {
  if (!Array.isArray(list?.models)) return modelEntries(list).map((entry) => entry.id)
  const names = list.models.map((entry: Info | null) => entry?.name)
  return names.filter((name): name is string => typeof name === 'string' && name !== '')
}

/** One card per model: the shortest name is its id, the others are aliases. */
export function groupDated(ids: readonly string[]): readonly ModelCard[] {
  const groups = Map.groupBy(new Set(ids), (id) => id.replace(DATE_SUFFIX, ''))
  return [...groups.values()].map((names) => {
    const [id, ...aliases] = names.toSorted((a, b) => a.length - b.length || (a < b ? -1 : 1))
    const model_type = [...capabilitiesOf(id)]
    return { id, model_type, ...(aliases.length > 0 && { aliases }) }
  })
}

function capabilitiesOf(id: string): readonly Capability[] {
  return CAPABILITIES_OF_NAME.find(([pattern]) => pattern.test(id))?.[1] ?? DEFAULT_CAPABILITIES
}
