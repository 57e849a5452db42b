import type { Engine } from './engine.ts'

export const mlx: Engine = {
  name: 'mlx',
  notes: [
    'Its model list names no owner: set `runtime_type`, and `models` to the folder that it was started with.',
    'Content that is not text is 400 instead of 404. When its generation thread has ended, its 404 are failures of the worker: restart it.',
    'It ignores `n`, formats of the response and tools without a template. `stop` cuts the text out of the answer and goes on; over gRPC the gateway finds the stop strings and ends the generation.',
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
