/**
 * Parsers of untrusted input (workers, clients, module authors): 256 KB of hostile text is parsed or rejected in time
 * proportional to its length, and only the documented errors are thrown.
 */

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseBoundedJson } from '#kernel'
import {
  parseCallArguments,
  parsePrometheusText,
  readAnswerObject,
  readEvent,
  readLoadReport,
  topLevelMembers,
  withMembers,
} from '#shared'
import { EventCounter, EventSplitter } from '../../kernel/wire/event-splitter.ts'
import { usageOfBody } from '../../kernel/wire/token-usage.ts'
import { toTemplateMessages } from '../../plugins/models/tokenizers/chat-values.ts'
import { chatFormat } from '../../plugins/protocols/chat/serve/chat-format.ts'
import { generateFormat } from '../../plugins/protocols/chat/serve/generate-format.ts'
import { withModelInfo, withServerInfo } from '../../plugins/protocols/chat/serve/models/worker-info.ts'
import { toConstraint } from '../../plugins/protocols/chat/serve/settings.ts'
import { toRefusal } from '../../plugins/protocols/generations/errors.ts'
import { parseArguments } from '../../plugins/tools/mcp/tools/check-arguments.ts'
import { scrapeTargets } from '../../plugins/workers/health/engine-metrics.ts'
import { mergeMetrics } from '../../plugins/workers/health/merge-metrics.ts'
import { groupDated } from '../../plugins/workers/http/discover-models.ts'
import { headerName } from '../../plugins/workers/http/http1/response-head.ts'
import { readWorkerUrl } from '../../plugins/workers/http/http1/worker-origin.ts'
import { readGauges } from '../../plugins/workers/http/load-reports.ts'
import { listedModels } from '../../plugins/workers/http/worker-queries.ts'
import { errorMessageIn } from '../../plugins/workers/pairs/errors.ts'
import { reportsOfRank, toEngineLoad, usedTokens } from '../../plugins/workers/registry/engine-load.ts'
import { toLoadDetails } from '../../plugins/workers/registry/get-loads.ts'
import { checkWorkerUrl, workerKey } from '../../plugins/workers/registry/worker-url.ts'
import { observe } from '../support/observe.ts'

const TEXT_BYTES = 262_144
const WORST = [
  '1',
  '/',
  '/v1/',
  ' ',
  '\t',
  '\n',
  '\r',
  '\r\n',
  '"',
  '\\',
  '\\"',
  '{',
  '[',
  '{},',
  '{"a":',
  ',',
  'a',
  ':',
  'data: ',
  '#',
  '# HELP ',
  'a{',
  'a{b="',
  'a 1',
  'a 1 ',
  'a 1\n',
  '1e',
  '.',
  '-',
  '-2024-01-01',
  '@0101',
  '"prompt_tokens":',
  'é',
].map((piece) => piece.repeat(Math.ceil(TEXT_BYTES / piece.length)))
type Frame = (text: string) => string

const ANY: readonly Frame[] = [(text) => text, (text) => `${text}!`]
const METRICS: readonly Frame[] = [
  ...ANY,
  (text) => `metric ${text}x`,
  (text) => `metric{label="${text}`,
  (text) => `# HELP metric ${text}`,
  // A line break in JavaScript, but not in the format.
  (text) => `# HELP metric${text}\u2028x`,
]
const ADDRESS: readonly Frame[] = [...ANY, (text) => `http://host/${text}x`]
const JSON_TEXT: readonly Frame[] = [...ANY, (text) => `{"a":"${text}`, (text) => `{"a":${text}`]

const target = (url: string) => [{ url, dataParallel: null, apiKey: null, connectionMode: 'http' }] as never
const everyControl = { controlOf: () => ({ metricsText: async () => null }) as never }
const worker = { models: [], runtimeType: 'sglang' } as never

/** Each parser with the frames that provoke its worst case. */
const readers: Record<string, readonly [readonly Frame[], (text: string, bytes: Buffer) => unknown]> = {
  'metrics text': [METRICS, (text) => [...mergeMetrics([{ url: 'u', families: parsePrometheusText(text) }])]],
  'gauges of a metrics page': [METRICS, (text) => readGauges(text)],
  'a worker URL': [ADDRESS, (text) => [checkWorkerUrl(text), workerKey(text)]],
  'a worker URL, unchecked': [
    ADDRESS,
    (text) => [workerKey(text), readWorkerUrl(text), scrapeTargets(everyControl, target(text))],
  ],
  'JSON of a worker': [JSON_TEXT, (_text, bytes) => parseBoundedJson(bytes)],
  'members of a body': [
    JSON_TEXT,
    (_text, bytes) => [topLevelMembers(bytes), withMembers(bytes, new Map([['a', '1']]))],
  ],
  'an event stream': [
    JSON_TEXT,
    (_text, bytes) => [new EventSplitter().push(bytes), new EventCounter().push(bytes), readEvent(bytes)],
  ],
  'token usage of a body': [
    JSON_TEXT,
    (text, bytes) => [usageOfBody(bytes), observe(generateFormat, text, { isEventStream: false })],
  ],
  'token usage of a stream': [JSON_TEXT, (text) => observe(chatFormat, text, { removesUsage: true })],
  'names of models': [ANY, (text) => groupDated([text, `${text}-2024-01-01`])],
  'a header name': [ANY, (_text, bytes) => headerName(bytes, 0, bytes.length)],
}

describe.each(Object.entries(readers))('%s', (_name, [frames, read]) => {
  test('256 KB of hostile text takes linear time', () => {
    let longestMs = 0
    for (const worst of WORST) {
      for (const frame of frames) {
        const text = frame(worst)
        const bytes = Buffer.from(text)
        const before = process.cpuUsage()
        try {
          read(text, bytes)
        } catch (error) {
          // Invalid input may be rejected; a stack overflow is a failure.
          expect(error).not.toBeInstanceOf(RangeError)
        }
        longestMs = Math.max(longestMs, process.cpuUsage(before).user / 1_000)
      }
    }
    // Even a native search of the whole text for each of its lines takes longer.
    expect(longestMs).toBeLessThan(500)
  }, 300_000)
})

/** JSON readers may return nothing, throw their own error, or return a shallow value. */
const jsonReaders: Record<string, (text: string) => unknown> = {
  'an answer': readAnswerObject,
  'arguments of a tool': parseArguments,
  'arguments of a call': parseCallArguments,
  'arguments of an earlier call': (text) =>
    toTemplateMessages([{ role: 'assistant', tool_calls: [{ function: { name: 'f', arguments: text } }] }], {
      toolArguments: 'value',
    } as never),
  'a schema in a text': (text) => toConstraint({ json_schema: text }),
  'a refusal of a worker': (text) => toRefusal(500, [], Buffer.from(text)).message.length,
  'a refusal of a pair': (text) => errorMessageIn(Buffer.from(text)).length,
}

test.each(Object.entries(jsonReaders))('%s: deeply nested JSON is rejected', (_what, read) => {
  const levels = 100_000
  let made: unknown = null
  try {
    made = read(`{"a":${'['.repeat(levels)}${']'.repeat(levels)}}`)
  } catch (error) {
    expect(error).not.toBeInstanceOf(RangeError)
  }
  // A value of that depth could not be serialized.
  expect(() => JSON.stringify(made)).not.toThrow()
})

describe('reports of engines', () => {
  const words = fc.constantFrom(
    '__proto__',
    'constructor',
    'toString',
    'loads',
    'dp_rank',
    'num_used_tokens',
    'data',
    'id',
    'owned_by',
    'token_usage',
    'timestamp',
    'dp_rank_count',
    'gen_throughput',
    'version',
    'api_key',
    'models',
  )
  const { report } = fc.letrec((tie) => ({
    report: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom(null, true, '', 'x', '__proto__', 'constructor', -1, 0, 1, 1e308, 2 ** 53, -0.5),
      fc.array(tie('report'), { maxLength: 4 }),
      fc
        .array(fc.tuple(words, tie('report')), { maxLength: 5 })
        .map((entries) => Object.fromEntries(entries)),
    ),
  }))
  test('every engine report is parsed or dropped, without an exception', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          report,
          report.map((loads) => ({ loads })),
          report.map((data) => ({ data })),
        ),
        (value) => {
          const info = JSON.parse(JSON.stringify(value)) as never
          listedModels(info)
          const reports = readLoadReport(info)?.ranks ?? null
          if (reports !== null) {
            toLoadDetails(reports, '')
            usedTokens(reports)
            toEngineLoad(reports, 1)
            toEngineLoad(reportsOfRank(reports, 0, 2), 1)
          }
          const object = (typeof info === 'object' && info !== null ? info : {}) as Record<string, unknown>
          expect(withServerInfo(object, worker)).not.toHaveProperty('api_key')
          expect(withModelInfo(object, worker)).not.toHaveProperty('api_key')
        },
      ),
      { numRuns: 20_000 },
    )
  })

  test('300,000 ranks are no more than an engine can have', () => {
    const loads = Array.from({ length: 300_000 }, () => ({ num_used_tokens: 1 }))
    const reports = readLoadReport({ loads })?.ranks ?? []
    expect(toEngineLoad(reports, 1).usedTokens).toBe(1_024)
    expect(toLoadDetails(reports, '').loads.length).toBe(1_024)
  })
})
