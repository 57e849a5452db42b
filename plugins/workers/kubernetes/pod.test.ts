import { expect, test } from 'vitest'
import type { KubernetesConfig } from './config.ts'
import { commonSelector, type Pod, podWorkers } from './pod.ts'

const base: KubernetesConfig = {
  selector: { app: 'engine' },
  prefillSelector: {},
  decodeSelector: {},
  namespace: null,
  port: 8000,
  scheme: 'http',
  modelIdFrom: null,
  workerApiKey: null,
  kubeconfig: null,
  resyncSecs: 60,
  coalesceMs: 0,
  ignorePodReadiness: false,
}

interface PodChange {
  metadata?: Partial<NonNullable<Pod['metadata']>>
  status?: Partial<NonNullable<Pod['status']>>
}

function pod({ metadata, status }: PodChange = {}): Pod {
  return {
    metadata: { name: 'engine-0', namespace: 'llama', uid: 'uid-0', labels: { app: 'engine' }, ...metadata },
    status: {
      phase: 'Running',
      podIP: '10.0.0.7',
      conditions: [{ type: 'Ready', status: 'True' }],
      ...status,
    },
  }
}

const urls = (of: Pod, config = base) => podWorkers(of, config).map(({ url }) => url)

test('a ready pod with the labels is a worker on the default port, labelled with its pod', () => {
  expect(podWorkers(pod(), base)).toEqual([
    {
      url: 'http://10.0.0.7:8000',
      podUid: 'uid-0',
      spec: '["regular",null,null]',
      body: {
        url: 'http://10.0.0.7:8000',
        worker_type: 'regular',
        labels: {
          'weir/pod-name': 'engine-0',
          'weir/pod-uid': 'uid-0',
          'weir/pod-spec': '["regular",null,null]',
        },
      },
    },
  ])
})

test.each<[string, PodChange]>([
  ['other labels', { metadata: { labels: { app: 'other' } } }],
  ['no address yet', { status: { podIP: undefined } }],
  ['terminating', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }],
  ['not started', { status: { phase: 'Pending' } }],
  ['finished', { status: { phase: 'Succeeded' } }],
  ['not ready', { status: { conditions: [{ type: 'Ready', status: 'False' }] } }],
])('a pod with %s is not a worker', (_case, change) => {
  expect(urls(pod(change))).toEqual([])
})

test('the readiness of pods can be ignored', () => {
  const unready = pod({ status: { conditions: [{ type: 'Ready', status: 'False' }] } })
  expect(urls(unready, { ...base, ignorePodReadiness: true })).toEqual(['http://10.0.0.7:8000'])
})

test.each([
  ['8001,8002, 8001', ['http://10.0.0.7:8001', 'http://10.0.0.7:8002']],
  ['8001,x', ['http://10.0.0.7:8000']],
  ['70000', ['http://10.0.0.7:8000']],
])('the ports annotation %j gives %j', (text, expected) => {
  expect(urls(pod({ metadata: { annotations: { 'weir/worker-ports': text } } }))).toEqual(expected)
  expect(urls(pod({ metadata: { annotations: { 'smg.ai/worker-ports': text } } }))).toEqual(expected)
})

test('an IPv6 address is put in brackets', () => {
  expect(urls(pod({ status: { podIP: 'fd00::7' } }))).toEqual(['http://[fd00::7]:8000'])
})

test('role selectors decide the type; bootstrap ports go with the ports of prefill pods', () => {
  const config = {
    ...base,
    selector: {},
    prefillSelector: { app: 'engine', role: 'prefill' },
    decodeSelector: { app: 'engine', role: 'decode' },
  }
  const annotations = { 'weir/worker-ports': '1,2', 'sglang.ai/bootstrap-port': '8998,8999' }
  const bodies = (role: string) =>
    podWorkers(pod({ metadata: { labels: { app: 'engine', role }, annotations } }), config).map(
      ({ body }) => [body.worker_type, body.bootstrap_port],
    )
  expect(bodies('prefill')).toEqual([
    ['prefill', 8998],
    ['prefill', 8999],
  ])
  expect(bodies('decode')).toEqual([
    ['decode', undefined],
    ['decode', undefined],
  ])
  expect(commonSelector(config)).toBe('app=engine')
})

test.each([
  ['namespace', 'llama'],
  ['label:model', 'by-label'],
  ['annotation:model', 'by-annotation'],
])('the model id is read from %s', (modelIdFrom, expected) => {
  const metadata = {
    labels: { app: 'engine', model: 'by-label' },
    annotations: { model: 'by-annotation' },
  }
  const [worker] = podWorkers(pod({ metadata }), { ...base, modelIdFrom })
  expect(worker.body.models).toEqual([{ id: expected }])
})
