import { ExportResultCode } from '@opentelemetry/core'
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base'
import { expect, test } from 'vitest'
import type { Logger } from '#kernel'
import type { ValueFamily } from '../../../kernel/contracts/metric.ts'
import { ThreadMetrics } from '../../../kernel/observe/metrics.ts'
import { WatchedExporter } from './span-pipeline.ts'

test('failed exports are counted, and logged once until an export succeeds', () => {
  let works = false
  const exporter: SpanExporter = {
    export: (_, callback) =>
      callback(
        works
          ? { code: ExportResultCode.SUCCESS }
          : { code: ExportResultCode.FAILED, error: new Error('connect ECONNREFUSED') },
      ),
    shutdown: async () => {},
  }
  const lines: string[] = []
  const note = (fields: { reason?: string }, text: string) => lines.push(`${text} ${fields.reason ?? ''}`)
  const metrics = new ThreadMetrics()
  const watched = new WatchedExporter(exporter, metrics, { warn: note, info: note } as unknown as Logger)
  const send = () => watched.export([{}, {}] as ReadableSpan[], () => {})
  for (const step of [false, false, false, true, true, false]) {
    works = step
    send()
  }
  expect(lines).toEqual([
    'span export failed, spans are lost connect ECONNREFUSED',
    'recovered: span export failed, spans are lost ',
    'span export failed, spans are lost connect ECONNREFUSED',
  ])
  const values = metrics
    .snapshot()
    .map(({ name, ...family }) => [name, (family as ValueFamily).series[0].value])
  expect(Object.fromEntries(values)).toEqual({
    weir_tracing_export_failures_total: 4,
    weir_tracing_lost_spans_total: 8,
  })
})
