import type { Engine } from './engine.ts'

export const mlx: Engine = {
  name: 'mlx',
  owners: ['mlx', 'mlx_lm', 'mlx-lm'],
  loadSources: ['loads'],
  errorWords: [
    { status: 404, words: 'content type is supported', means: 'bad_request' },
    // Until it is restarted.
    { status: 404, words: 'generation thread', means: 'failed' },
  ],
}
