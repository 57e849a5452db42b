import { expect, test } from 'vitest'
import { defaultConfig } from './config.ts'
import { pairDisagreements } from './pair-peers.ts'
import { toWorkerSpec } from './spec.ts'
import { buildWorker } from './worker.ts'

const worker = (name: string, worker_type: 'regular' | 'prefill' | 'decode', labels = {}, model = 'm') =>
  buildWorker(
    {
      id: name,
      spec: toWorkerSpec({ url: `http://${name}:1`, worker_type, labels }),
      findings: { connectionMode: 'http', runtimeType: 'sglang', models: [{ id: model }], labels: {} },
      origin: 'api',
      rank: null,
    },
    0,
    1,
    defaultConfig(),
  )

test('a prefill worker is told where decode workers of its model differ from it, once a label', () => {
  const prefill = worker('p', 'prefill', { tp_size: '4', dp_size: '1', load_balance_method: 'round_robin' })
  const all = [
    prefill,
    worker('p2', 'prefill', { tp_size: '8' }),
    worker('other', 'decode', { tp_size: '2' }, 'another model'),
    worker('alike', 'decode', { tp_size: '4', dp_size: '1' }),
    worker('d1', 'decode', { tp_size: '8', dp_size: '1' }),
    worker('d2', 'decode', { tp_size: '16', load_balance_method: 'shortest' }),
  ]
  expect(pairDisagreements(prefill, all)).toEqual([
    { label: 'tp_size', value: '4', peer: 'http://d1:1', peerValue: '8' },
    { label: 'load_balance_method', value: 'round_robin', peer: 'http://d2:1', peerValue: 'shortest' },
  ])
})

test('regular workers and workers that do not tell agree with everybody', () => {
  const decode = worker('d', 'decode', { tp_size: '8' })
  expect(pairDisagreements(worker('r', 'regular', { tp_size: '4' }), [decode])).toEqual([])
  expect(pairDisagreements(worker('p', 'prefill'), [decode])).toEqual([])
  expect(pairDisagreements(decode, [worker('p', 'prefill')])).toEqual([])
})
