/** A short chat, answered whole: what does the gateway add to each request? */
import type { Scenario } from '../support/figure.ts'
import { measureJsonRelay } from '../support/json-relay.ts'

export const relayJson: Scenario = {
  name: 'relay-json',
  question: 'what does a 250-byte chat on 32 connections cost?',
  run: (options) => measureJsonRelay({ bodyBytes: 250, cpuTarget: 2 }, options),
}
