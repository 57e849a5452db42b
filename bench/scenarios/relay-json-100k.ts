/** A long prompt, answered whole: what does a large request body add? */
import type { Scenario } from '../support/figure.ts'
import { measureJsonRelay } from '../support/json-relay.ts'

export const relayJson100k: Scenario = {
  name: 'relay-json-100k',
  question: 'what does a chat with a 100 KB prompt on 32 connections cost?',
  run: (options) => measureJsonRelay({ bodyBytes: 100_000, cpuTarget: 2.5 }, options),
}
