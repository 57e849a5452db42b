/** The engines that are spoken to over gRPC, in the order in which a stranger is asked. */
import { mlx } from './mlx.ts'
import type { Runtime } from './runtime.ts'
import { sglang } from './sglang.ts'
import { tokenspeed } from './tokenspeed.ts'
import { trtllm } from './trtllm.ts'
import { vllm } from './vllm.ts'

export const RUNTIMES: readonly Runtime[] = [sglang, vllm, trtllm, tokenspeed, mlx]

const byName: ReadonlyMap<string, Runtime> = new Map(RUNTIMES.map((runtime) => [runtime.name, runtime]))

export function findRuntime(name: string): Runtime | undefined {
  return byName.get(name === 'tensorrt-llm' ? 'trtllm' : name)
}
