/** Words for what a model can do. */
export type Capability =
  | 'chat'
  | 'completions'
  | 'responses'
  | 'embeddings'
  | 'rerank'
  | 'vision'
  | 'tools'
  | 'reasoning'
  | 'image_gen'
  | 'audio'
  | 'moderation'

/** What a language model can do when nobody says otherwise. */
export const DEFAULT_CAPABILITIES: readonly Capability[] = Object.freeze([
  'chat',
  'completions',
  'responses',
  'tools',
])
