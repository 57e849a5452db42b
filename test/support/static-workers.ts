/** A plugin for kernel tests: ready workers at given addresses and one relaying route, without the workers plugin. */
import {
  apiErrorFormat,
  definePlugin,
  type ModelCard,
  type Plugin,
  Type,
  type WorkerBalance,
  type WorkerEntry,
  WorkerTableReplica,
} from '#kernel'
import { workerEntry } from './worker-entry.ts'

export interface StaticWorker extends Partial<Omit<WorkerEntry, 'models' | 'slot'>> {
  readonly url: string
  readonly models?: readonly (string | ModelCard)[]
}

export interface StaticWorkers {
  readonly plugin: Plugin
  /** The balance of the thread, once the gateway has started. */
  balance(): WorkerBalance
}

/** `POST /relay` (api) goes to `/echo` of a picked worker. */
export function staticWorkers(workers: readonly StaticWorker[]): StaticWorkers {
  let balance: WorkerBalance | null = null
  const plugin = definePlugin({
    manifest: { name: 'static', version: '0.0.0', description: 'fixed workers', config: Type.Object({}) },
    register(host) {
      balance = host.balance
      host.route({
        method: 'POST',
        path: '/relay',
        access: 'api',
        errors: apiErrorFormat,
        docs: { summary: 'relays', tag: 'test', responses: {} },
        handler: (ctx) => {
          const { model, stream } = ctx.peek()
          host.upstream.relay(ctx, { model, stream, path: '/echo' })
        },
      })
      return {
        ready: async () => {
          const entries = workers.map((worker) =>
            workerEntry({ ...worker, slot: host.balance.allocateSlot() }),
          )
          await host.publish(WorkerTableReplica, { workers: entries })
          for (const entry of entries) host.balance.setStatus(entry.slot, 'ready')
        },
      }
    },
  })
  return {
    plugin,
    balance: () => {
      if (balance === null) throw new Error('the gateway has not started')
      return balance
    },
  }
}
