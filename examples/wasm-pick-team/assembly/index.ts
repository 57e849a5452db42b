/** Sends the requests of a team to the workers that are labelled with it, the least busy one first. */
import { config, Description, handlePick, metric } from 'weir-gateway/wasm-sdk/assembly'

export function describe(): i32 {
  return new Description()
    .needsHeaders(['x-team'])
    .setting('label', 'text', false, 'Label of workers that names their team; default team')
    .setting('max_in_flight', 'integer', false, 'A worker with more requests is passed by; default none')
    .send()
}

export function on_pick(): i32 {
  return handlePick((request, pick) => {
    const team = request.headers.get('x-team')
    if (team === null) return -1
    const label = config.text('label', 'team')
    let room = config.integer('max_in_flight', i32.MAX_VALUE - 1) + 1
    const candidates = pick.candidates
    let best = -1
    for (let i = 0; i < candidates.length; i++) {
      const inFlight = candidates[i].inFlight
      if (inFlight >= room || !candidates[i].isLabelled(label, team)) continue
      best = i
      room = inFlight
    }
    if (best < 0) metric.increment('elsewhere_total', 1)
    return best
  })
}
