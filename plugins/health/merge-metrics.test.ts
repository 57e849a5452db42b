import { expect, test } from 'vitest'
import { parsePrometheusText, writePrometheusText } from '#contracts'
import { mergeMetrics } from './merge-metrics.ts'

const merge = (...texts: string[]) =>
  writePrometheusText(
    mergeMetrics(
      texts.map((text, index) => ({ url: `http://w${index}:1`, families: parsePrometheusText(text) })),
    ),
  )

test('§4.8 every sample says which worker it is of, and each family stands once', () => {
  const text = '# HELP up Is up.\n# TYPE up gauge\nup 1\n'
  expect(merge(text, text)).toBe(
    [
      '# HELP up Is up.',
      '# TYPE up gauge',
      'up{worker_addr="http://w0:1"} 1',
      'up{worker_addr="http://w1:1"} 1',
      '',
    ].join('\n'),
  )
})

test('§4.8 colons in metric names become underscores, also in TYPE and in buckets', () => {
  expect(merge('# TYPE vllm:lat histogram\nvllm:lat_bucket{le="1"} 2\nvllm:lat_count 2\n')).toBe(
    [
      '# TYPE vllm_lat histogram',
      'vllm_lat_bucket{le="1",worker_addr="http://w0:1"} 2',
      'vllm_lat_count{worker_addr="http://w0:1"} 2',
      '',
    ].join('\n'),
  )
})

test('§4.8 label sets that differ are padded with empty values', () => {
  expect(merge('a{x="1"} 1\n', 'a{y="2"} 2\n')).toBe(
    ['a{x="1",worker_addr="http://w0:1",y=""} 1', 'a{x="",worker_addr="http://w1:1",y="2"} 2', ''].join('\n'),
  )
})

test('a worker cannot pass its samples off as those of another', () => {
  expect(merge('a{worker_addr="http://w9:1"} 1\n')).toBe('a{worker_addr="http://w0:1"} 1\n')
})

test('a family without samples is left out', () => {
  expect(merge('# TYPE a counter\n')).toBe('')
})
