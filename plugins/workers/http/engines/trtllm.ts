/** TensorRT-LLM. */
import type { Engine } from './engine.ts'

export const trtllm: Engine = {
  name: 'trtllm',
  owners: ['trtllm', 'tensorrt_llm', 'tensorrt-llm'],
  loadSources: ['loads'],
}
