/** Choice of a worker: the one with the fewest requests in the zone of the setting `zone`. */
import { config, handlePick } from 'weir-gateway/wasm-sdk/assembly'

export function on_pick(): i32 {
  return handlePick((request, pick) => {
    const zone = config.text('zone', 'local')
    const candidates = pick.candidates
    let best = -1
    for (let i = 0; i < candidates.length; i++) {
      if (!candidates[i].isLabelled('zone', zone)) continue
      if (best < 0 || candidates[i].inFlight < candidates[best].inFlight) best = i
    }
    return best
  })
}
