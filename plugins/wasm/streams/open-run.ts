/** Opens the run of an item by its attach point. @hot */
import { StreamRun, type StreamRunParts } from './run-stream.ts'
import { TextRun } from './text-run.ts'

export function openStreamRun(parts: StreamRunParts): StreamRun | TextRun {
  return parts.item.point === 'OnText' ? new TextRun(parts) : new StreamRun(parts)
}
