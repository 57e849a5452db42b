/** `transformers serve`. */
import { isObject } from '#kernel'
import { listedModels } from '../worker-queries.ts'
import type { Engine } from './engine.ts'

export const transformers: Engine = {
  name: 'transformers',
  tried: '5.24.0',
  notes: [
    'Its streams have no `[DONE]`; the gateway adds it. Responses are translated; its own streams unless `stream` is false, which the gateway always sends.',
    'It keeps stop strings in the text: the gateway finds them and ends the generation there, with an estimated usage (`estimated`). Translated requests have no members that it answers with 422; those of chat clients pass unchanged.',
    'It ignores `n`, `logprobs`, formats of the response, images and tools without a template, and does not check the context length. Whole answers run to the end when the client has left. Prefer streams.',
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
