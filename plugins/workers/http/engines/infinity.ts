/** Infinity, which serves embeddings and reranking; its routes have `/v1` with `--url-prefix /v1`. */
import type { Engine } from './engine.ts'

export const infinity: Engine = {
  name: 'infinity',
  notes: ['Start it with `--url-prefix /v1`. Its models are listed as embeddings or rerank.'],
  owners: ['infinity'],
  loadSources: [],
}
