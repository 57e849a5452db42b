/** The OnText attach point: passes one text of an answer through its modules. */
import type { TextEditor, TextStream } from '#kernel'
import { wasmErrors } from '../errors.ts'
import { quoted } from '../instances/guest-frame.ts'
import type { StreamItemResult } from '../threads/guest-task.ts'
import type { RequestModules } from './request-modules.ts'
import type { StreamBatcher } from './stream-batcher.ts'
import type { StreamWork } from './stream-work.ts'

export class TextSession implements TextEditor {
  readonly #batcher: StreamBatcher
  readonly #of: RequestModules
  readonly #prefixes: readonly string[]
  #held: string[]

  constructor(batcher: StreamBatcher, of: RequestModules, { kind, choice, call }: TextStream) {
    this.#batcher = batcher
    this.#of = of
    this.#held = of.modules.map(() => '')
    const [id, name] = call === null ? ['null', 'null'] : [quoted(call.id), quoted(call.name)]
    const text = `"kind":"${kind}","choice":${choice},"call_id":${id},"call_name":${name}}`
    this.#prefixes = of.requests.map((request) => `${text},"request":${request}}`)
  }

  /** @throws wasm_module_failed if a fail-closed module failed */
  edit(text: string, isLast: boolean): string | Promise<string> {
    const { modules, ctx, tenant } = this.#of
    const work: StreamWork = {
      modules,
      states: this.#held,
      prefixes: this.#prefixes,
      requestId: ctx.requestId,
      tenant,
      firstIndex: 0,
      events: text === '' ? [] : [{ name: null, data: text }],
      isEnd: isLast,
      origin: ctx,
    }
    const finish = (out: StreamItemResult['out'] | null): string => {
      if (out === null) throw wasmErrors.wasm_module_failed()
      this.#held = work.states
      return out.length === 0 ? '' : (out[0].written?.data ?? text)
    }
    const out = this.#batcher.run(work)
    return out instanceof Promise ? out.then(finish) : finish(out)
  }
}
