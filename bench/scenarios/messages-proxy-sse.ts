/** A stream of messages from a worker that speaks the format, beside the relayed chat stream. */
import { runBesideRelay } from '../support/beside-relay.ts'
import type { Scenario } from '../support/figure.ts'

export const messagesProxySse: Scenario = {
  name: 'messages-proxy-sse',
  question: 'what does an event of a relayed message cost beside a chunk of a relayed chat?',
  run: (options) =>
    runBesideRelay(options, {
      name: 'messages relayed',
      features: (port) => ({
        plugins: {
          messages: {},
          workers: {
            workers: [
              {
                url: `http://127.0.0.1:${port}`,
                runtime_type: 'external',
                provider: 'anthropic',
                api_key: 'bench',
                models: [{ id: 'bench' }],
              },
            ],
          },
        },
      }),
      load: { exact: 1, messages: 1 },
      target: 1.1,
      note: 'the bytes of every stream were compared with the worker’s',
    }),
}
