/** The chat stream of relay-sse, read into events and told as a message. */
import { runBesideRelay } from '../support/beside-relay.ts'
import type { Scenario } from '../support/figure.ts'

export const messagesTranslateSse: Scenario = {
  name: 'messages-translate-sse',
  question: 'what does a chunk of a chat cost that is told as an event of a message?',
  run: (options) =>
    runBesideRelay(options, {
      name: 'messages translated',
      features: () => ({ plugins: { messages: {} } }),
      load: { exact: 0, messages: 1 },
      target: 2.5,
      note: 'the text of every stream was compared with the worker’s',
    }),
}
