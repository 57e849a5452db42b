/** The engine adapters that there are, each against the contract. */

import type { EngineAdapter } from '#contracts'
import lineEngine from '../../examples/custom-engine/line-engine.ts'
import { chatEngine } from '../../plugins/chat-engine/chat-engine.ts'
import { workerEntry } from '../support/worker-entry.ts'
import { engineContract } from './engine-contract.ts'

const chatWorker = workerEntry({ slot: 0, apis: ['chat'] })
const sse = (...data: readonly string[]) => data.map((one) => Buffer.from(`data: ${one}\n\n`))
const chunk = (delta: unknown, reason: string | null = null) =>
  JSON.stringify({ id: 'c', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: reason }] })
const EVENT_STREAM = ['content-type', 'text/event-stream']
const call = { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":' } }

engineContract('chat', () => ({
  adapter: chatEngine({ maxAnswerBytes: 1 << 20, maxEventBytes: 1 << 20 }),
  worker: chatWorker,
  stranger: workerEntry({ slot: 1, apis: ['messages'] }),
  cutsAnywhere: true,
  answers: [
    {
      name: 'text',
      headers: EVENT_STREAM,
      chunks: sse(chunk({ content: 'Grü' }), chunk({ content: 'ße' }), chunk({}, 'stop'), '[DONE]'),
      text: 'Grüße',
    },
    {
      name: 'a tool call in pieces',
      headers: EVENT_STREAM,
      chunks: sse(
        chunk({ tool_calls: [call] }),
        chunk({ tool_calls: [{ index: 0, function: { arguments: '1}' } }] }),
        chunk({}, 'tool_calls'),
        '[DONE]',
      ),
      text: '',
      calls: [['f', '{"x":1}']],
    },
    {
      name: 'a whole answer',
      headers: ['content-type', 'application/json'],
      chunks: [
        Buffer.from(
          JSON.stringify({ choices: [{ index: 0, message: { content: 'hi' }, finish_reason: 'stop' }] }),
        ),
      ],
      text: 'hi',
    },
    {
      name: 'an error in the stream',
      headers: EVENT_STREAM,
      chunks: sse(chunk({ content: 'x' }), '{"error":{"message":"no"}}'),
      text: 'x',
      fails: true,
    },
  ],
}))

/** The adapter that the example registers. */
function lineAdapter(): EngineAdapter {
  let found: EngineAdapter | null = null
  const host = {
    transport() {},
    workerControl() {},
    use: () => ({
      addEngine(adapter: EngineAdapter) {
        found = adapter
      },
    }),
  }
  lineEngine.register(host as unknown as Parameters<typeof lineEngine.register>[0], {})
  return found as unknown as EngineAdapter
}

const lines = (...all: readonly string[]) => all.map((line) => Buffer.from(line))

engineContract('of the example custom-engine', () => ({
  adapter: lineAdapter(),
  worker: workerEntry({ slot: 0, connectionMode: 'lines', apis: [] }),
  stranger: chatWorker,
  cutsAnywhere: false,
  answers: [
    { name: 'words', chunks: lines('WORD Grüße', 'WORD  you', 'DONE 1 2'), text: 'Grüße you' },
    { name: 'a failure', chunks: lines('WORD x', 'FAIL 500 no'), text: 'x', fails: true },
  ],
}))
