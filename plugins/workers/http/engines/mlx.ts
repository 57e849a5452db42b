import type { Engine } from './engine.ts'

export const mlx: Engine = {
  name: 'mlx',
  tried: 'mlx-lm 0.32.2',
  notes: [
    'Its model list names no owner: set `runtime_type`. Its model is called as the folder that it was started with; the list is empty if the Hugging Face cache folder is missing, so set `models` then.',
    'Content that is not text is 400 instead of 404. When its generation thread has ended, its 404 are failures of the worker: restart it.',
    'A stop string of several tokens is cut out of the text, which goes on: the gateway finds the stop strings and ends the generation there, with an estimated usage (`estimated`). A list of prompts is sent one after the other, and prompts of token ids are 400.',
    'It ignores `n`, formats of the response and tools without a template, and does not check the context length. Streams have no log probabilities.',
    'Whole answers run to the end when the client has left. Prefer streams.',
  ],
  owners: ['mlx', 'mlx_lm', 'mlx-lm'],
  loadSources: [],
  quirks: { mistakesStops: true, takesOneText: true },
  errorWords: [
    { status: 404, words: 'content type is supported', means: 'bad_request' },
    // Until it is restarted.
    { status: 404, words: 'generation thread', means: 'failed' },
  ],
}
