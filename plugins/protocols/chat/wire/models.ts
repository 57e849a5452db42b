/** Payloads of the model list and of what workers say of themselves. */
import { type Static, Type } from '#kernel'

export const ModelEntry = Type.Object({
  id: Type.String(),
  object: Type.Literal('model'),
  created: Type.Integer({ description: '0: not known.' }),
  owned_by: Type.String({ description: '`self_hosted`, or the provider.' }),
  max_model_len: Type.Optional(Type.Integer({ description: 'Context length in tokens.' })),
  aliases: Type.Optional(Type.Array(Type.String(), { description: 'Other names of the model.' })),
})

export type ModelEntry = Static<typeof ModelEntry>

export const ModelList = Type.Object({ object: Type.Literal('list'), data: Type.Array(ModelEntry) })

/** At least these; the worker's other members pass through. */
export const ModelInfo = Type.Object({
  model_name: Type.String(),
  max_tokens: Type.Integer({ description: '0: not known.' }),
  vocab_size: Type.Integer({ description: '0: not known.' }),
})

/** At least these; the worker's other members pass through. */
export const ServerInfo = Type.Object({
  version: Type.String(),
  backend: Type.String(),
  gpu_count: Type.Integer(),
})
