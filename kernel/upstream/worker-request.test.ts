import { describe, expect, test } from 'vitest'
import { workerEntry } from '../../test/support/worker-entry.ts'
import type { RelayContext } from '../contracts/reply-sink.ts'
import { OutgoingHeaders } from './outgoing.ts'
import { Transports } from './transports.ts'
import { toWorkerRequest } from './worker-request.ts'

const local = workerEntry({ slot: 0 })

/** A request without headers. */
const NO_HEADERS = { header: () => undefined, forwardedHeaders: [] as string[] } as unknown as RelayContext

describe('the body for one worker', () => {
  const options = { model: 'm', stream: false, path: '/generate' }
  const bodyFor = (worker: typeof local, body: string) =>
    toWorkerRequest(
      NO_HEADERS,
      options,
      new OutgoingHeaders([], new Transports()),
      worker,
      Buffer.from(body),
    ).body?.toString()
  const rank = { ...local, dataParallel: { baseUrl: 'http://h:1', rank: 2, size: 4 } }

  test('says which data-parallel rank is meant, in place of what the client said (routing facts 2.4)', () => {
    expect(bodyFor(rank, '{"text":"a", "data_parallel_rank":9}')).toBe('{"data_parallel_rank":2,"text":"a"}')
    expect(bodyFor(local, '{"text":"a", "data_parallel_rank":9}')).toBe(
      '{"text":"a", "data_parallel_rank":9}',
    )
  })

  test('stays as it is when it is no JSON object', () => {
    expect(bodyFor(rank, '')).toBe('')
    expect(bodyFor(rank, '[1]')).toBe('[1]')
  })
})
