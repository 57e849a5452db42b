/** Arrivals and prompts of policy-sim. */
import { expect, test } from 'vitest'
import { arrivalsOf } from './policy-workload.ts'

const workload = { ratePerSecond: 80, seconds: 20, shared: 0.7, seed: 1 }
const systemOf = (body: string): string | null => {
  const { messages } = JSON.parse(body) as { messages: { role: string; content: string }[] }
  return messages[0].role === 'system' ? messages[0].content : null
}

test('the seed determines the arrivals', () => {
  expect(arrivalsOf(workload)).toEqual(arrivalsOf(workload))
  expect(arrivalsOf({ ...workload, seed: 2 })[0]).not.toEqual(arrivalsOf(workload)[0])
})

test('arrivals have the configured rate, are ordered, and have the gaps of a Poisson process', () => {
  const times = arrivalsOf({ ...workload, seconds: 100 }).map(({ atMs }) => atMs)
  expect(times).toEqual(times.toSorted((left, right) => left - right))
  expect(times.length / 8_000).toBeCloseTo(1, 1)
  const gaps = times.slice(1).map((atMs, index) => atMs - times[index])
  const mean = gaps.reduce((sum, gap) => sum + gap) / gaps.length
  const deviation = Math.sqrt(gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length)
  expect(deviation / mean).toBeCloseTo(1, 1)
})

test('the share of prompts with a system prompt is as configured, and every system prompt is used', () => {
  const systems = arrivalsOf(workload).map(({ body }) => systemOf(body))
  const shared = systems.filter((system) => system !== null)
  expect(shared.length / systems.length).toBeCloseTo(0.7, 1)
  const distinct = new Set(shared)
  expect(distinct.size).toBe(100)
  for (const system of distinct) expect(system.split(' ')).toHaveLength(200)
})

test('without shared prompts no two prompts have the same start', () => {
  const bodies = arrivalsOf({ ...workload, shared: 0 }).map(({ body }) => body)
  expect(bodies.every((body) => systemOf(body) === null)).toBe(true)
  expect(new Set(bodies.map((body) => body.slice(0, 220))).size).toBe(bodies.length)
})
