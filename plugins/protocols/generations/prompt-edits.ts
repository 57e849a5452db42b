/** Passes the texts of a generation through the `onPromptText` hooks: those of every form in which a worker may get it. */
import { editTexts, type GenerationRequest, type NativeRequest, type RelayContext } from '#kernel'

/** The members that hold texts for the model, named as in a chat. */
interface ShownRequest {
  readonly messages: unknown
  readonly prompt: string
  readonly tools: GenerationRequest['tools']
  readonly response_format: GenerationRequest['constraint']
  readonly stop: GenerationRequest['sampling']['stop']
  readonly chat_template_kwargs: GenerationRequest['templateArguments']
  readonly carried: Readonly<Record<string, unknown>>
  readonly native: ShownNative | null
}

interface ShownNative extends Pick<NativeRequest, 'tools' | 'toolChoice'> {
  readonly prompt: readonly unknown[]
  readonly members: Readonly<Record<string, unknown>>
  /** Of the tools, in their order. */
  readonly functions: readonly unknown[]
}

/** @returns a promise only if a hook does @throws what a hook throws, to refuse the request */
export function editPrompt(
  ctx: RelayContext,
  request: GenerationRequest,
): GenerationRequest | Promise<GenerationRequest> {
  if (ctx.hooks.onPromptText === null) return request
  const { prompt, tools, constraint, sampling, templateArguments, carried } = request
  const shown: ShownRequest = {
    messages: prompt.kind === 'chat' ? prompt.messages : null,
    prompt: prompt.kind === 'text' ? prompt.text : '',
    tools,
    response_format: constraint,
    stop: sampling.stop,
    chat_template_kwargs: templateArguments,
    carried: Object.fromEntries(carried ?? []),
    native: request.native === undefined ? null : showNative(request.native, tools),
  }
  const put = (edited: ShownRequest) => (edited === shown ? request : withTexts(request, edited))
  const edited = editTexts(ctx, shown)
  return edited instanceof Promise ? edited.then(put) : put(edited)
}

function showNative(native: NativeRequest, tools: GenerationRequest['tools']): ShownNative {
  return {
    prompt: native.prompt(),
    members: native.members(),
    tools: native.tools,
    toolChoice: native.toolChoice,
    functions: tools.map((tool) => native.functions?.get(tool.function)),
  }
}

function withTexts(request: GenerationRequest, edited: ShownRequest): GenerationRequest {
  const { prompt, sampling, carried, native } = request
  return {
    ...request,
    prompt: {
      ...prompt,
      ...(prompt.kind === 'chat' && { messages: edited.messages }),
      ...(prompt.kind === 'text' && { text: edited.prompt }),
    } as GenerationRequest['prompt'],
    tools: edited.tools,
    constraint: edited.response_format,
    sampling: { ...sampling, stop: edited.stop },
    templateArguments: edited.chat_template_kwargs,
    ...(carried !== undefined && { carried: new Map(Object.entries(edited.carried)) }),
    ...(native !== undefined && edited.native !== null && { native: withNative(native, edited) }),
  }
}

function withNative(native: NativeRequest, { native: edited, tools }: ShownRequest): NativeRequest {
  if (edited === null) return native
  const functions = tools.flatMap((tool, index): [typeof tool.function, object][] => {
    const declared = edited.functions[index]
    return typeof declared === 'object' && declared !== null ? [[tool.function, declared]] : []
  })
  return {
    ...native,
    prompt: () => edited.prompt,
    members: () => ({ ...edited.members }),
    tools: edited.tools,
    toolChoice: edited.toolChoice,
    functions: new Map(functions) as NativeRequest['functions'],
  }
}
