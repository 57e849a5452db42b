/**
 * Cost of what gateways share about prompts: a pick of cache_aware on a data thread with and without notes, and notes
 * written, read and applied on control. Run `npm run build`, then `node bench/micro/mesh-notes.ts`.
 */
import { type Figure, verdict } from '../support/figure.ts'
import { renderTable } from '../support/report.ts'

const ROUNDS = 25
const PICKS = 4_000
const NOTES = 1_000_000
const WORKERS = 30
const PROMPT_BYTES = 4_096
/** Prompts that each pick repeats. */
const KNOWN = 500

async function load(file: string): Promise<Record<string, unknown>> {
  return (await import(new URL(`../../dist/${file}.js`, import.meta.url).href)) as Record<string, unknown>
}

type Make<Made> = new (...parameters: unknown[]) => Made
interface Batch {
  add(low: number, high: number, value: number, worker: number): void
  flush(): void
}
interface Reader {
  readonly count: number
  open(message: Buffer): number[] | null
  read(most: number, take: (low: number, high: number, value: number, worker: number) => void): void
}
interface State {
  readonly prefixes: { learn(low: number, high: number, span: number, name: number): void }
}
interface Policy {
  pick(candidates: object, request: object): number
}
interface Registry {
  make(name: string, parts: object): Policy
}

const { NoteBatch, NoteBatchReader } = (await load('plugins/routing/policies/notes/note-batch')) as {
  NoteBatch: Make<Batch>
  NoteBatchReader: Make<Reader>
}
const { NoteRing } = (await load('plugins/routing/policies/notes/note-ring')) as { NoteRing: Make<object> }
const { PolicyState } = (await load('plugins/routing/policies/policy-state')) as { PolicyState: Make<State> }
const { policiesConfig } = await load('plugins/routing/policies/config')
const { registerPolicies } = (await load('plugins/routing/policies/register-policies')) as {
  registerPolicies: (host: object, config: object, state: object) => void
}
const { PolicyRegistry } = (await load('kernel/balance/policy-registry')) as {
  PolicyRegistry: Make<
    Registry & { register(...parts: unknown[]): void; addOverlay(...parts: unknown[]): void }
  >
}
const { ThreadMetrics } = (await load('kernel/observe/metrics')) as { ThreadMetrics: Make<object> }
const { resolvePluginConfig } = (await load('plugins/cli/configuration/load-plugin')) as {
  resolvePluginConfig: (name: string, schema: unknown, section: object) => object
}

const members = Array.from({ length: WORKERS }, (_, slot) => {
  return { slot, id: `worker-${slot}`, url: `http://10.0.0.${slot}:8000`, cost: 1 }
})
const slots = Int32Array.from(members, ({ slot }) => slot)
const view = {
  length: WORKERS,
  members,
  slots,
  inFlightBySlot: new Int32Array(WORKERS),
  hasEqualCosts: true,
  hasLoads: false,
  worker: (index: number) => members[index],
  slot: (index: number) => index,
  inFlight: () => 0,
  load: () => null,
  indexOfSlot: (slot: number) => slot,
}

function openState(isNoting: boolean): { state: State; policy: Policy } {
  const config = resolvePluginConfig('policies', policiesConfig, {})
  const metrics = new ThreadMetrics()
  const shared = (_name: string, bytes: number) => new SharedArrayBuffer(bytes)
  const rings = { prefixes: new NoteRing(shared, 'prefixes-notes'), sessions: null }
  const state = new PolicyState({ config, shared, metrics, maxWorkers: 4_096, ...(isNoting && { rings }) })
  const registry = new PolicyRegistry()
  const host = {
    policy: registry.register.bind(registry),
    policyOverlay: registry.addOverlay.bind(registry),
  }
  registerPolicies(host, config, state)
  const parts = { model: 'm', leg: 'whole', random: Math.random, metrics, shared }
  return { state, policy: registry.make('cache_aware', parts) }
}

function requestOf(number: number): object {
  const content = `${number} ${'words of a prompt '.repeat(PROMPT_BYTES / 18)}`
  const body = Buffer.from(JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] }))
  return { model: 'm', leg: 'whole', body, tokenIds: null, header: () => undefined }
}

/** CPU time of `work` in microseconds, for each of `count`. */
function cpuMicros(count: number, work: () => void): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / count
}

function pickFigures(): Figure[] {
  const plain = openState(false).policy
  const noting = openState(true).policy
  const known = Array.from({ length: KNOWN }, (_, i) => requestOf(i))
  let next = KNOWN
  const values: Record<'plainNew' | 'notingNew' | 'plainKnown' | 'notingKnown', number[]> = {
    plainNew: [],
    notingNew: [],
    plainKnown: [],
    notingKnown: [],
  }
  const pickAll = (policy: Policy, requests: readonly object[]) =>
    cpuMicros(PICKS, () => {
      for (let i = 0; i < PICKS; i++) policy.pick(view, requests[i % requests.length])
    })
  for (let round = -2; round < ROUNDS; round++) {
    const fresh = Array.from({ length: PICKS }, () => requestOf(next++))
    const measured = {
      plainKnown: pickAll(plain, known),
      notingKnown: pickAll(noting, known),
      plainNew: pickAll(plain, fresh),
      notingNew: pickAll(noting, fresh),
    }
    if (round < 0) continue
    for (const name of Object.keys(values) as (keyof typeof values)[]) values[name].push(measured[name])
  }
  const added = (noted: readonly number[], base: readonly number[]) =>
    noted.map((value, i) => value - base[i])
  return [
    { name: 'pick, 4 KiB seen before, without notes', unit: 'µs', values: values.plainKnown },
    { name: 'pick, 4 KiB never seen, without notes', unit: 'µs', values: values.plainNew },
    {
      name: 'added by notes, 4 KiB seen before',
      unit: 'µs',
      values: added(values.notingKnown, values.plainKnown),
      target: 0.5,
    },
    {
      name: 'added by notes, 4 KiB never seen',
      unit: 'µs',
      values: added(values.notingNew, values.plainNew),
      target: 0.5,
      note: '32 notes',
    },
  ]
}

function noteFigures(): Figure[] {
  const messages: Buffer[] = []
  const batch = new NoteBatch((message: Buffer) => messages.push(message))
  const reader = new NoteBatchReader()
  const lows = Int32Array.from({ length: NOTES }, (_, i) => Math.imul(i + 1, 0x9e3779b1))
  const { state } = openState(false)
  const rounds = Array.from({ length: ROUNDS }, () => {
    messages.length = 0
    const written = cpuMicros(NOTES, () => {
      for (let i = 0; i < NOTES; i++) batch.add(lows[i], i, 128, i % WORKERS)
      batch.flush()
    })
    let sum = 0
    const read = cpuMicros(NOTES, () => {
      for (const message of messages) {
        reader.open(message)
        reader.read(NOTES, (low, high, value, worker) => {
          sum ^= low ^ high ^ value ^ worker
        })
      }
    })
    const applied = cpuMicros(NOTES, () => {
      for (const message of messages) {
        reader.open(message)
        reader.read(NOTES, (low, high, value, worker) =>
          state.prefixes.learn(low, high, value, (worker << 16) | 1),
        )
      }
    })
    return { written, read, applied, sum }
  })
  const figure = (name: string, key: 'written' | 'read' | 'applied', target: number): Figure => ({
    name,
    unit: 'µs',
    values: rounds.map((round) => round[key]),
    target,
    note: 'per note, of a million',
  })
  return [
    figure('written into messages', 'written', 0.2),
    figure('read from messages', 'read', 0.1),
    figure('read and applied to the table', 'applied', 1),
  ]
}

const figures = [...pickFigures(), ...noteFigures()]
const question = 'what do notes for other gateways cost?'
console.log(renderTable({ scenario: 'mesh-notes', question, figures }))
if (figures.some((figure) => verdict(figure) === 'missed')) process.exitCode = 1
