/** `transformers serve`. */
import { isObject } from '#kernel'
import { listedModels } from '../worker-queries.ts'
import type { Engine } from './engine.ts'

export const transformers: Engine = {
  name: 'transformers',
  notes: [
    'Its streams have no `[DONE]`; the gateway adds it. Responses are translated; its own streams unless `stream` is false, which the gateway always sends.',
    'It ignores `n`, `logprobs`, formats of the response, images and tools without a template, and does not check the context length.',
  ],
  owners: [],
  // Other servers have this owner too, but no status.
  async recognizes(queries) {
    const [first] = listedModels(await queries.find('/v1/models'))
    return first?.owned_by === 'local' && isObject(first.status)
  },
  // It streams unless `stream` is false, without names of events, and an answer at the token limit is `completed`.
  avoidedApis: ['responses'],
  loadSources: [],
  quirks: { mistakesStops: true },
}
