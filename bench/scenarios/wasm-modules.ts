/** Gateways with different modules, compared with one without. */
import { compareCheckouts } from '../support/compare-checkouts.ts'
import {
  type ComparableScenario,
  type Figure,
  type RunOptions,
  ratios,
  type Scenario,
} from '../support/figure.ts'
import { compileGuests } from '../support/guests.ts'
import { type ModuleUse, startWasmGateway } from '../support/wasm-gateway.ts'
import { ALONE_RATE, CONNECTIONS, commonFigures, measureModules } from '../support/wasm-relay.ts'

const prompt = { guest: 'prompt', point: 'OnPromptText', instance: 'reuse' } as const
const header = { guest: 'header', point: 'OnRequest' } as const
const NO_MODULES = 'no modules'

/** Compares a module in the gateways of two checkouts. @param bytes length of each request body */
function comparing(module: ModuleUse, bytes: number): ComparableScenario['compare'] {
  return (options) =>
    compareCheckouts(
      {
        start: (root, { port: workerPort }) => {
          const guests = compileGuests([module.guest])
          return startWasmGateway({ root, workerPort, guests, modules: [module] })
        },
        client: 'paced-load.ts',
        // Rate 0 keeps every connection busy.
        load: { connections: CONNECTIONS, bytes, rate: 0 },
      },
      options,
    )
}

export const wasmNone: Scenario = {
  name: 'wasm-none',
  question: 'what does the wasm plugin cost when no module is registered?',
  async run(options) {
    const measured = await measureModules({ [NO_MODULES]: [] }, 250, options)
    return [
      ...commonFigures(measured, [NO_MODULES]),
      {
        name: `CPU per request, ${NO_MODULES} / bare`,
        unit: '×',
        values: ratios(measured.cpu(NO_MODULES), measured.cpu('bare')),
        target: 1.05,
      },
    ]
  },
}

export const wasmBody4k: Scenario = {
  name: 'wasm-body-4k',
  question: 'what does a module that replaces a 4 KB body cost?',
  async run(options) {
    const reuse = [{ guest: 'body', point: 'OnRequest', instance: 'reuse' }] as const
    return commonFigures(await measureModules({ reuse }, 4_096, options), ['reuse'])
  },
}

export const wasmPrompt: Scenario = {
  name: 'wasm-prompt',
  question:
    'what does a module cost that replaces every text of a 4 KB prompt, beside one that replaces the body?',
  async run(options) {
    const body = [{ guest: 'body', point: 'OnRequest', instance: 'reuse' }] as const
    const measured = await measureModules({ body, prompt: [prompt] }, 4_096, options)
    return [
      ...commonFigures(measured, ['body', 'prompt']),
      {
        name: 'CPU per request, prompt module / body module',
        unit: '×',
        values: ratios(measured.cpu('prompt'), measured.cpu('body')),
        target: 2,
      },
    ]
  },
  compare: comparing(prompt, 4_096),
}

async function runHeaders(options: RunOptions): Promise<Figure[]> {
  const variants = {
    reuse: [{ ...header, instance: 'reuse' }],
    fresh: [{ ...header, instance: 'fresh' }],
    inline: [{ ...header, instance: 'fresh', placement: 'inline' }],
  } as const
  const measured = await measureModules(variants, 250, options)
  return [
    ...commonFigures(measured, ['reuse', 'fresh', 'inline']),
    ...['reuse', 'fresh', 'inline'].map((label) => ({
      name: `added p50 at ${ALONE_RATE}/s, ${label}`,
      unit: 'ms',
      values: measured.addedLatencyAlone(label, 'p50Micros'),
      target: label === 'inline' ? 0.02 : 0.12,
      note: 'at the other rates most of it is the wait for a core, which four processes share',
    })),
    {
      name: 'throughput with a module, reuse',
      unit: '1/s',
      values: measured.perSecond('reuse'),
      atLeast: 10_000,
      note: 'for a machine on which the bare gateway reaches 20,000 or more; the ratio below holds on any machine',
    },
    {
      name: 'throughput, reuse / bare',
      unit: '×',
      values: ratios(measured.perSecond('reuse'), measured.perSecond('bare')),
    },
    {
      name: 'added CPU, fresh / reuse',
      unit: '×',
      values: ratios(measured.addedCpu('fresh'), measured.addedCpu('reuse')),
      target: 1.3,
    },
    { name: 'added CPU, inline', unit: 'µs', values: measured.addedCpu('inline'), target: 12 },
  ]
}

export const wasmHeaders: Scenario = {
  name: 'wasm-headers',
  question: 'what does one module that adds a header cost?',
  run: runHeaders,
  compare: comparing({ ...header, instance: 'reuse' }, 250),
}

async function runChain(options: RunOptions): Promise<Figure[]> {
  const pooled = { ...header, instance: 'reuse' } as const
  const inline = { ...header, instance: 'fresh', placement: 'inline' } as const
  const variants = {
    one: [pooled],
    three: [pooled, pooled, pooled],
    'one inline': [inline],
    'three inline': [inline, inline, inline],
  }
  const measured = await measureModules(variants, 250, options)
  const addedCpu = (three: string, one: string, target: number): Figure => ({
    name: `added CPU, ${three} / ${one}`,
    unit: '×',
    values: ratios(measured.addedCpu(three), measured.addedCpu(one)),
    target,
  })
  return [
    ...commonFigures(measured, Object.keys(variants)),
    addedCpu('three', 'one', 1.5),
    addedCpu('three inline', 'one inline', 2),
    {
      name: 'added p50, three / one',
      unit: '×',
      values: ratios(measured.addedLatency('three', 'p50Micros'), measured.addedLatency('one', 'p50Micros')),
      target: 1.5,
    },
  ]
}

export const wasmChain3: Scenario = {
  name: 'wasm-chain-3',
  question: 'what do three modules cost compared with one?',
  run: runChain,
}
