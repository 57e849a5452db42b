/** Generations: chat requests in the internal form, answered as events, over whoever speaks to a model's workers. */
import { definePlugin, Generations, Type, WorkerTableReplica } from '#kernel'
import { ThreadGenerations } from './thread-generations.ts'

export default definePlugin({
  manifest: {
    name: 'generations',
    version: '0.1.0',
    description: 'Chat requests in one internal form, between front formats and engines.',
    provides: [Generations],
    config: Type.Object({}, { additionalProperties: false }),
  },
  register(host) {
    const generations = new ThreadGenerations(host.upstream, host.balance)
    host.provide(Generations, generations)
    host.replica(WorkerTableReplica).onChange(() => generations.onWorkersChanged())
  },
})
