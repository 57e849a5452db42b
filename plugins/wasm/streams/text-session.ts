/** The OnText attach point: passes one text of an answer through its modules. */
import type { TextEditor, TextStream } from '#kernel'
import { wasmErrors } from '../errors.ts'
import { quoted } from '../instances/guest-frame.ts'
import type { CallStatistics } from '../statistics/call-statistics.ts'
import type { StreamItemResult } from '../threads/guest-task.ts'
import type { StreamBatcher, StreamWork } from './stream-batcher.ts'
import type { RequestModules } from './stream-session.ts'

export class TextSession implements TextEditor {
  readonly #batcher: StreamBatcher
  readonly #statistics: Pick<CallStatistics, 'isSuspended'>
  readonly #of: RequestModules
  readonly #prefixes: readonly string[]
  #held: string[]

  constructor(
    batcher: StreamBatcher,
    statistics: Pick<CallStatistics, 'isSuspended'>,
    of: RequestModules,
    { kind, choice, call }: TextStream,
  ) {
    this.#batcher = batcher
    this.#statistics = statistics
    this.#of = of
    this.#held = of.modules.map(() => '')
    const [id, name] = call === null ? ['null', 'null'] : [quoted(call.id), quoted(call.name)]
    const text = `"kind":"${kind}","choice":${choice},"call_id":${id},"call_name":${name}}`
    this.#prefixes = of.requests.map((request) => `${text},"request":${request}}`)
  }

  /** @throws wasm_module_failed if a fail-closed module failed */
  edit(text: string, isLast: boolean): string | Promise<string> {
    const { modules, ctx, tenant } = this.#of
    const given = this.#heldOfSuspended() + text
    const work: StreamWork = {
      modules,
      states: this.#held,
      prefixes: this.#prefixes,
      requestId: ctx.requestId,
      tenant,
      firstIndex: 0,
      events: given === '' ? [] : [{ name: null, data: given }],
      isEnd: isLast,
      origin: ctx,
    }
    const finish = (out: StreamItemResult['out'] | null): string => {
      if (out === null) throw wasmErrors.wasm_module_failed()
      this.#held = work.states
      const passed = out.length === 0 ? '' : (out[0].written?.data ?? given)
      // A module that was lost with its thread may still hold text back.
      return isLast ? passed + this.#held.join('') : passed
    }
    const out = this.#batcher.run(work)
    return out instanceof Promise ? out.then(finish) : finish(out)
  }

  /** Text that a module held back before it was suspended. */
  #heldOfSuspended(): string {
    let text = ''
    for (let place = 0; place < this.#held.length; place++) {
      if (this.#held[place] === '' || !this.#statistics.isSuspended(this.#of.modules[place])) continue
      text = this.#held[place] + text
      this.#held[place] = ''
    }
    return text
  }
}
