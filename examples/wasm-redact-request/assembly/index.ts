/** Takes e-mail addresses, card numbers and telephone numbers out of every text that a model gets, in every format. */
import { Action, Description, handlePromptText, metric } from 'weir-gateway/wasm-sdk/assembly'
import { Findings, redact } from './redact'

export function describe(): i32 {
  return new Description().needsHeaders([]).needsNoClientIp().failsClosed().send()
}

export function on_prompt_text(): i32 {
  return handlePromptText((request, prompt) => {
    const findings = new Findings()
    for (let i = 0; i < prompt.texts.length; i++) {
      const one = prompt.texts[i]
      const before = findings.count
      const redacted = redact(one.text, findings)
      if (findings.count > before) one.text = redacted
    }
    if (findings.count > 0) metric.increment('redactions_total', findings.count)
    return Action.pass()
  })
}
