/** The usage plugin: a ledger of tokens, requests and costs by tenant, key, model and day, and budgets. */
import {
  defineCommand,
  definePlugin,
  Mesh,
  type RouteDefinition,
  SharedStore,
  Store,
  settlesWithin,
  type TokenUsage,
} from '#kernel'
import { findRecordStore } from '#shared'
import { BudgetCounters } from './budget-counters.ts'
import { BudgetTotals, type OwnedBudget } from './budget-totals.ts'
import { type BudgetState, Budgets, type ReadBudgets, RequestBudgets, type Reservation } from './budgets.ts'
import { usageConfig, usageProblems } from './config.ts'
import { DurableEnd } from './durable-end.ts'
import { HeldUse } from './held-use.ts'
import { Ledger, openUsageRecords } from './ledger.ts'
import { budgetsRoute, usageRoute } from './routes.ts'
import { PriceList, UsageMeter } from './usage-meter.ts'
import type { UsageRow } from './usage-record.ts'
import { readUsage } from './usage-report.ts'

const StoreUsage = defineCommand<readonly UsageRow[], void>('usage.store')
const AskBudgets = defineCommand<{ tenant: string; key: string }, readonly BudgetState[]>('usage.budgets')

const ListBudgets = defineCommand<null, readonly OwnedBudget[]>('usage.list-budgets')

/** Longest wait for the store at the end; control logs what it does not take. */
const FLUSH_MS = 1_000

/** Endpoints whose requests use tokens. */
const GENERATING: ReadonlySet<string> = new Set([
  'chat',
  'classify',
  'completions',
  'embeddings',
  'generate',
  'messages',
  'rerank',
  'responses',
])

export default definePlugin({
  manifest: {
    name: 'usage',
    version: '0.1.0',
    description: 'Tokens, requests and costs by tenant, key and model; budgets.',
    usesOptionally: [Mesh, SharedStore, Store],
    degradable: [SharedStore],
    config: usageConfig,
    reloads: ['prices', 'budgets'],
  },
  enables: (_, isEnabled) => (isEnabled('postgres') ? [] : ['storage']),
  check: usageProblems,
  register(host, config) {
    const { store, isShared } = findRecordStore(host)
    host.upstream.countUsage()
    const records = openUsageRecords(store)

    const mesh = host.find(Mesh)
    // A shared store has the usage of all gateways.
    const counters =
      mesh?.shares('limits') && !isShared
        ? new BudgetCounters((writer, sequence, changes) => mesh.addToCounters(writer, sequence, changes))
        : null
    const totals = new BudgetTotals(records, config.budgets, isShared, () => ledger, counters)
    const ledger = new Ledger(
      store,
      {
        keepDays: config.keepDays,
        isSynced: config.durable,
        onStored: (rows) => totals.onStored(rows),
      },
      host.log,
    )
    host.onCommand(StoreUsage, (rows) => {
      totals.onUsage(rows)
      return ledger.add(rows)
    })
    host.onCommand(AskBudgets, ({ tenant, key }) => totals.read(tenant, key))
    host.onCommand(ListBudgets, () => totals.list())

    const meter = new UsageMeter(
      { slot: host.slot<TokenUsage>(), send: (rows) => host.command(StoreUsage, rows) },
      new PriceList(config.prices),
    )
    const columns = host.kernelConfig.threads + 1
    const held = new HeldUse(host.shared('held', HeldUse.bytes(columns)), host.threadIndex)
    const readBudgets: ReadBudgets = (tenant, key) => {
      // Control gets this thread's usage first.
      meter.sendNow().catch(() => undefined)
      return host.command(AskBudgets, { tenant, key })
    }
    const budgets = new Budgets(config.budgets, readBudgets, held)
    const requests = new RequestBudgets(budgets, meter, host.slot<Reservation>())
    // Not those of one stored response, such as its cancellation, and not counting.
    const generates = ({ method, endpoint, path }: RouteDefinition) =>
      method === 'POST' &&
      endpoint !== undefined &&
      GENERATING.has(endpoint) &&
      !path.includes(':') &&
      !path.endsWith('/input_tokens')

    const gate = host.hook('onRequest', (ctx) => requests.enter(ctx), {
      scope: 'all',
      routes: generates,
      order: 'early',
      startsOff: config.budgets.length === 0,
    })
    if (config.durable) {
      const end = new DurableEnd(meter, host.slot<Buffer>())
      const late = { scope: 'all', routes: generates, order: 'late' } as const
      host.hook('onResponse', (ctx, response) => end.onResponse(ctx, response), late)
      host.hook('onEvents', (ctx, events, isLast) => end.onEvents(ctx, events, isLast), late)
    }
    host.hook('onDone', (ctx) => requests.end(ctx), {
      scope: 'all',
      routes: ({ access }) => access === 'api',
    })

    host.route(
      usageRoute(async (query) => {
        // What this thread has counted is in the report.
        await meter.flush()
        return readUsage(records, query)
      }),
    )
    host.route(
      budgetsRoute(async () => {
        await meter.flush()
        return host.command(ListBudgets, null)
      }),
    )
    return {
      start: () => held.reset(),
      reload: (next) => {
        totals.budgets = next.budgets
        budgets.update(next.budgets)
        meter.prices = new PriceList(next.prices)
        gate.update({ isOn: next.budgets.length > 0 })
      },
      stop: async () => {
        await settlesWithin(
          meter.flush().catch(() => undefined),
          FLUSH_MS,
        )
        if (!host.isControl) return
        await ledger.stop()
        await counters?.stop()
      },
    }
  },
})
