import { expect, test } from 'vitest'
import type { WorkerEntry } from '#kernel'
import { withModelInfo, withServerInfo } from './worker-info.ts'

const worker = (models: object[] = [], runtimeType = 'sglang') =>
  ({ models, runtimeType }) as unknown as WorkerEntry

test.each<[object, object]>([
  [
    { model_name: 'a', max_tokens: 1, vocab_size: 2 },
    { model_name: 'a', max_tokens: 1, vocab_size: 2 },
  ],
  [
    { served_model_name: 'b', model_path: '/p', context_length: 3 },
    { model_name: 'b', max_tokens: 3, vocab_size: 0 },
  ],
  [
    { model_path: '/p', max_model_len: 4, is_generation: true },
    { model_name: '/p', max_tokens: 4, vocab_size: 0, is_generation: true },
  ],
  [{}, { model_name: 'unknown', max_tokens: 0, vocab_size: 0 }],
])('model info of %j has the documented fields', (info, expected) => {
  expect(withModelInfo({ ...info }, worker())).toMatchObject(expected)
})

test('missing members are taken from the model card', () => {
  expect(withModelInfo({}, worker([{ id: 'card', context_length: 9 }]))).toEqual({
    model_name: 'card',
    max_tokens: 9,
    vocab_size: 0,
  })
})

test.each<[object, object]>([
  [
    { version: '1', backend: 'x', gpu_count: 3 },
    { version: '1', backend: 'x', gpu_count: 3 },
  ],
  [
    { tp_size: 4, pp_size: 2 },
    { version: 'unknown', backend: 'sglang', gpu_count: 8, tp_size: 4 },
  ],
  [{ sglang_version: '0.5' }, { version: '0.5', gpu_count: 1 }],
  [{}, { version: 'unknown', backend: 'sglang', gpu_count: 1 }],
])('server info of %j has the documented fields', (info, expected) => {
  expect(withServerInfo({ ...info }, worker())).toMatchObject(expected)
})

test('keys and unlisted settings are not shown: the routes are public', () => {
  const info = {
    api_key: 'k1',
    admin_api_key: 'k2',
    ssl_keyfile_password: 'k3',
    hf_token: 'k4',
    server_args: { api_key: 'k5' },
    internal_states: [{ api_key: 'k6' }],
    // Allowed names with values other than a string, a number or a list of them.
    preferred_sampling_params: { api_key: 'k7' },
    architectures: [{ api_key: 'k8' }],
    version: '1',
    tp_size: 2,
  }
  for (const shown of [withServerInfo(info, worker()), withModelInfo(info, worker())])
    expect(JSON.stringify(shown)).not.toMatch(/k\d/)
  expect(withServerInfo(info, worker())).toMatchObject({ version: '1', tp_size: 2 })
})
