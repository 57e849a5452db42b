import { expect, test } from 'vitest'
import { parsePrometheusText, printPrometheusText } from '#shared'
import { runInSlices } from './engine-metrics.ts'
import { mergeMetrics } from './merge-metrics.ts'

const merge = async (...texts: string[]) =>
  runInSlices(
    printPrometheusText(
      await runInSlices(
        mergeMetrics(
          texts.map((text, index) => ({ url: `http://w${index}:1`, families: parsePrometheusText(text) })),
        ),
      ),
    ),
  )

test('every sample has the label of its worker, and each family is written once', async () => {
  const text = '# HELP up Is up.\n# TYPE up gauge\nup 1\n'
  expect(await merge(text, text)).toBe(
    [
      '# HELP up Is up.',
      '# TYPE up gauge',
      'up{worker_addr="http://w0:1"} 1',
      'up{worker_addr="http://w1:1"} 1',
      '',
    ].join('\n'),
  )
})

test('colons in metric names become underscores, also in TYPE and in buckets', async () => {
  expect(await merge('# TYPE vllm:lat histogram\nvllm:lat_bucket{le="1"} 2\nvllm:lat_count 2\n')).toBe(
    [
      '# TYPE vllm_lat histogram',
      'vllm_lat_bucket{le="1",worker_addr="http://w0:1"} 2',
      'vllm_lat_count{worker_addr="http://w0:1"} 2',
      '',
    ].join('\n'),
  )
})

test('different label sets are padded with empty values', async () => {
  expect(await merge('a{x="1"} 1\n', 'a{y="2"} 2\n')).toBe(
    ['a{x="1",worker_addr="http://w0:1",y=""} 1', 'a{x="",worker_addr="http://w1:1",y="2"} 2', ''].join('\n'),
  )
})

test('a worker cannot set the worker label of its samples', async () => {
  expect(await merge('a{worker_addr="http://w9:1"} 1\n')).toBe('a{worker_addr="http://w0:1"} 1\n')
})

test('a family without samples is omitted', async () => {
  expect(await merge('# TYPE a counter\n')).toBe('')
})

test('labels with secret names are omitted, as the page is public', async () => {
  const secrets = 'api_key="s1",admin_api_key="s2",hf_token="s3",ssl_keyfile_password="s4",client_secret="s5"'
  expect(await merge(`sglang:server_info{${secrets},model="m",token_type="prompt",key="k"} 1\n`)).toBe(
    'sglang_server_info{model="m",token_type="prompt",key="k",worker_addr="http://w0:1"} 1\n',
  )
})
