/** Dashboard and alerts use metrics that the gateway has. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { promtool } from '../support/promtool.ts'
import { readSource, sourceFiles } from './source-scan.ts'

const FOLDER = new URL('../../examples/observability/', import.meta.url)
const read = (name: string) => readFileSync(new URL(name, FOLDER), 'utf8')

const declared = new Set(
  sourceFiles(['{kernel,plugins}/**/*.ts'])
    .map((file) => readSource(file))
    .flatMap((source) => [...source.matchAll(/'(weir_[a-z_]+)'/g)].map(([, name]) => name)),
)

const namesIn = (text: string) => [...new Set(text.match(/weir_[a-z_]+/g) ?? [])]
const isKnown = (name: string) => declared.has(name) || declared.has(name.replace(/_(bucket|sum|count)$/, ''))

test.each(['grafana-dashboard.json', 'alerts.yml'])('%s uses only declared metrics', (file) => {
  const names = namesIn(read(file))
  expect(names.length).toBeGreaterThan(3)
  expect(names.filter((name) => !isKnown(name))).toEqual([])
})

test.skipIf(promtool === null)('promtool accepts the alerts, and their cases hold', async () => {
  const file = (name: string) => fileURLToPath(new URL(name, FOLDER))
  expect(await promtool?.run(['check', 'rules', file('alerts.yml')])).toMatchObject({ code: 0 })
  expect(await promtool?.run(['test', 'rules', file('alerts-cases.yml')])).toMatchObject({ code: 0 })
})

test('every panel of the dashboard has queries and a description', () => {
  interface Panel {
    type: string
    title: string
    description?: string
    targets?: { expr: string }[]
  }
  const { panels } = JSON.parse(read('grafana-dashboard.json')) as { panels: Panel[] }
  const graphs = panels.filter(({ type }) => type !== 'row')
  expect(graphs.length).toBeGreaterThan(10)
  for (const { title, description, targets } of graphs) {
    expect(description, title).toBeTruthy()
    expect(
      targets?.every(({ expr }) => expr.includes('weir_')),
      title,
    ).toBe(true)
  }
})
