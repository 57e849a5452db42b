/** The virtual-models plugin: model names of clients that stand for weighted targets and fallbacks. */
import { definePlugin, ModelTargets, TargetChooser } from '#kernel'
import { virtualModelsConfig, virtualModelsProblems } from './config.ts'
import { SESSION_HEADER, ThreadTargets } from './thread-targets.ts'

export default definePlugin({
  manifest: {
    name: 'virtual-models',
    version: '0.1.0',
    description:
      'Model names of clients that stand for weighted targets and fallbacks, over workers and vendors.',
    provides: [ModelTargets],
    usesOptionally: [TargetChooser],
    config: virtualModelsConfig,
    reloads: ['models'],
  },
  enables: ({ models }) => (Object.values(models).some(({ choose }) => choose === 'module') ? ['wasm'] : []),
  check: virtualModelsProblems,
  register(host, config) {
    const targets = new ThreadTargets(config, host.metrics, host.find(TargetChooser) ?? null)
    host.provide(ModelTargets, targets)
    // Kept on every route, for sticky sessions.
    host.hook('onRequest', () => {}, { scope: 'all', routes: () => false, headers: [SESSION_HEADER] })
    return { reload: (next) => targets.configure(next) }
  },
})
