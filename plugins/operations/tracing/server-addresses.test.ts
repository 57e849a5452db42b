import { expect, test } from 'vitest'
import type { WorkerEntry } from '#kernel'
import { ServerAddresses } from './request-spans.ts'

const of = (url: string, baseUrl?: string) =>
  Object.values(
    new ServerAddresses().of({
      url,
      dataParallel: baseUrl === undefined ? null : { baseUrl, rank: 1 },
    } as WorkerEntry),
  )

test('server.address is a host and server.port a number, for any form of the URL', () => {
  expect(of('http://10.0.0.7:8000')).toEqual(['10.0.0.7', 8000])
  expect(of('https://api.example.com/v1')).toEqual(['api.example.com', 443])
  expect(of('grpc://[::1]:50051')).toEqual(['::1', 50_051])
  expect(of('http://engine:30000@1', 'http://engine:30000')).toEqual(['engine', 30_000])
  expect(of('not a url')).toEqual(['not a url'])
})
