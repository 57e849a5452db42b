/** Sends a prompt in one of the client formats, and shows the answer beside its events. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { useSession } from '../../data/session.ts'
import { useData } from '../../data/use-data.ts'
import { Empty, PageHead, Panel } from '../../parts/basics.tsx'
import { Copy } from '../../parts/copy.tsx'
import { Choice, Field, Select, TextArea } from '../../parts/fields.tsx'
import { Answer, Events } from './answer.tsx'
import { type Exchange, NOTHING, send } from './exchange.ts'
import { formats, type Prompt } from './formats.ts'
import { LANGUAGES, type Language, snippet } from './snippets.ts'

interface ModelList {
  readonly data: readonly { readonly id: string }[]
}

/** Kept while other pages are open, and gone when the page is left: the key is in no storage of the browser. */
const memory = { key: '', text: 'Write two sentences about rivers.', system: '', maxTokens: '256' }

export function TryIt() {
  const { features } = useSession()
  const offered = formats.filter(({ name }) => features.includes(name))
  const [name, setName] = useState(offered[0]?.name ?? '')
  const models = useData<ModelList>('/v1/models', 10_000)
  const [model, setModel] = useState('')
  const [fields, setFields] = useState(memory)
  const [mode, setMode] = useState('stream')
  const [exchange, setExchange] = useState<Exchange>(NOTHING)
  const running = useRef<AbortController | null>(null)
  useEffect(() => () => running.current?.abort(), [])

  const format = offered.find((known) => known.name === name)
  if (format === undefined)
    return (
      <Empty title="No client format is enabled">
        Enable one of the plugins chat, responses and messages.
      </Empty>
    )
  const change = (changes: Partial<typeof memory>) =>
    setFields(Object.assign(memory, fields, changes) && { ...memory })
  const ids = models.value?.data?.map(({ id }) => id) ?? []
  const prompt: Prompt = {
    model: model || (ids[0] ?? ''),
    system: fields.system,
    text: fields.text,
    maxTokens: Number(fields.maxTokens) || 256,
    isStreamed: mode === 'stream',
  }
  const run = (event: Event) => {
    event.preventDefault()
    running.current?.abort()
    running.current = new AbortController()
    const { signal } = running.current
    send({ format, prompt, key: fields.key, signal, onChange: setExchange })
  }
  return (
    <>
      <PageHead title="Try it" />
      <form class="panel prompt" onSubmit={run}>
        <div class="filters">
          <Choice
            label="Format"
            value={name}
            options={offered.map((known) => [known.name, known.title] as const)}
            onChange={setName}
          />
          <Choice
            label="Delivery"
            value={mode}
            options={[
              ['stream', 'Streamed'],
              ['whole', 'Whole'],
            ]}
            onChange={setMode}
          />
        </div>
        <div class="filters">
          {ids.length > 0 ? (
            <Select
              label="Model"
              value={prompt.model}
              options={ids.map((id) => [id, id] as const)}
              onChange={setModel}
            />
          ) : (
            <Field label="Model" value={model} onChange={setModel} required />
          )}
          <Field
            label="Most output tokens"
            type="number"
            min={1}
            value={fields.maxTokens}
            onChange={(maxTokens) => change({ maxTokens })}
          />
          <Field
            label="API key"
            type="password"
            value={fields.key}
            onChange={(key) => change({ key })}
            hint="Stays in the memory of this page."
          />
        </div>
        <Field
          label="System prompt (optional)"
          value={fields.system}
          onChange={(system) => change({ system })}
        />
        <TextArea label="Prompt" rows={4} value={fields.text} onChange={(text) => change({ text })} />
        <div class="actions">
          <button type="submit" class="primary" disabled={exchange.isRunning || fields.text === ''}>
            Send
          </button>
          <button type="button" disabled={!exchange.isRunning} onClick={() => running.current?.abort()}>
            Stop
          </button>
        </div>
      </form>
      <div class="halves">
        <Answer exchange={exchange} />
        <Events exchange={exchange} isStreamed={exchange.eventCount !== 1} />
      </div>
      <Code text={(language) => snippet(language, location.origin, format, prompt)} />
    </>
  )
}

function Code({ text }: { text: (language: Language) => string }) {
  const [language, setLanguage] = useState<Language>('curl')
  const code = text(language)
  return (
    <Panel
      title="The same request"
      actions={
        <>
          <Choice
            label="Language"
            value={language}
            options={LANGUAGES.map((known) => [known, known] as const)}
            onChange={(chosen) => setLanguage(chosen as Language)}
          />
          <Copy text={code} />
        </>
      }
    >
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region needs the keyboard */}
      <pre tabIndex={0}>{code}</pre>
    </Panel>
  )
}
