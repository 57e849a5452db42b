/** What the module needs, and its handlers. */
import { Description } from 'weir-gateway/wasm-sdk/assembly'

export function describe(): i32 {
  return new Description().needsHeaders([]).reusesInstance().send()
}
