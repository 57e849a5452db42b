import type { Engine } from './engine.ts'

export const mlx: Engine = {
  name: 'mlx',
  owners: ['mlx', 'mlx_lm', 'mlx-lm'],
  loadSources: ['loads'],
}
