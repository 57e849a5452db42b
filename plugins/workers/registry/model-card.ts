/** Normal form of model cards: no empty members, and always a list of capabilities. */
import type { ModelCard } from '#kernel'
import { DEFAULT_CAPABILITIES } from '#shared'
import type { ModelCardWire } from './wire.ts'

/** Capabilities; the index of each is its bit in the numeric form. */
const CAPABILITIES = [
  'chat',
  'completions',
  'responses',
  'embeddings',
  'rerank',
  'generate',
  'vision',
  'tools',
  'reasoning',
  'image_gen',
  'audio',
  'moderation',
]

/** Drops empty members, expands a numeric `model_type`, and adds the default one. */
export function normalizeCard(card: ModelCardWire): ModelCard {
  const { id, model_type: given, ...rest } = card
  const members = Object.entries(rest).filter(([, value]) => !isEmpty(value))
  return { id, model_type: toCapabilities(given), ...Object.fromEntries(members) }
}

/** Adds configured aliases: `aliases` maps alias → model id. */
export function withAliases(card: ModelCard, aliases: Readonly<Record<string, string>>): ModelCard {
  const own = Object.keys(aliases).filter((alias) => aliases[alias] === card.id && alias !== card.id)
  if (own.length === 0) return card
  return { ...card, aliases: [...new Set([...(card.aliases ?? []), ...own])] }
}

/** Normal form of discovered cards, with configured aliases. */
export function toCards(
  found: readonly ModelCard[],
  aliases: Readonly<Record<string, string>>,
): readonly ModelCard[] {
  return found.map((card) => withAliases(normalizeCard(card as ModelCardWire), aliases))
}

/** Ids and aliases. */
export function namesOf(models: readonly ModelCard[]): string[] {
  return models.flatMap(({ id, aliases = [] }) => [id, ...aliases])
}

/** Whether the cards of a worker include the model; a worker without cards serves any. */
export function serves(models: readonly ModelCard[], model: string): boolean {
  return models.length === 0 || models.some((card) => card.id === model || card.aliases?.includes(model))
}

function toCapabilities(given: ModelCardWire['model_type']): readonly string[] {
  const words = typeof given === 'number' ? CAPABILITIES.filter((_, bit) => (given >> bit) & 1) : given
  return words != null && words.length > 0 ? words : DEFAULT_CAPABILITIES
}

function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === '') return true
  if (Array.isArray(value)) return value.length === 0
  return typeof value === 'object' && Object.keys(value).length === 0
}
