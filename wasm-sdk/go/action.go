package weir

import "strconv"

// Action is the decision of a handler for requests, responses, errors and tool calls.
type Action struct {
	action    string
	status    int
	set       [][2]string
	add       [][2]string
	remove    []string
	url       string
	method    string
	timeoutMs int
	state     string
	hasBody   bool
	body      []byte
}

// Pass continues without a change.
func Pass() *Action { return &Action{action: "continue"} }

// Reject responds at once; later modules and the handler of the gateway do not run.
func Reject(status int) *Action { return &Action{action: "reject", status: status} }

// Modify continues with the changes of the methods that follow.
func Modify() *Action { return &Action{action: "modify"} }

// Fetch makes the gateway send a request; the handler is called again with the result in Request.Fetched. Headers and
// body are those of the request to send. The operator lists the origins.
func Fetch(method, url string) *Action {
	return &Action{action: "fetch", method: method, url: url}
}

// Ask asks a model; the handler is called again with the text of the answer in Request.Fetched. The question is JSON such
// as {"messages":[{"role":"user","content":"…"}],"max_tokens":20}. The operator lists the models.
func Ask(model, question string) *Action {
	return Fetch("POST", "model:"+model).WithText(question)
}

// Keep sets the text that the next call finds in Request.State, at most 64 KiB. For Fetch.
func (action *Action) Keep(state string) *Action {
	action.state = state
	return action
}

// Within shortens the timeout of a fetch, milliseconds.
func (action *Action) Within(timeoutMs int) *Action {
	action.timeoutMs = timeoutMs
	return action
}

// WithStatus sets the status of a response. It is ignored for requests.
func (action *Action) WithStatus(status int) *Action {
	action.status = status
	return action
}

// SetHeader replaces all values of a name.
func (action *Action) SetHeader(name, value string) *Action {
	action.set = append(action.set, [2]string{name, value})
	return action
}

// AddHeader adds a value to those of a name.
func (action *Action) AddHeader(name, value string) *Action {
	if action.action != "modify" {
		return action.SetHeader(name, value)
	}
	action.add = append(action.add, [2]string{name, value})
	return action
}

// RemoveHeader removes all values of a name.
func (action *Action) RemoveHeader(name string) *Action {
	action.remove = append(action.remove, name)
	return action
}

// WithBody replaces the body.
func (action *Action) WithBody(body []byte) *Action {
	action.body, action.hasBody = body, true
	return action
}

// WithText replaces the body by a text.
func (action *Action) WithText(text string) *Action { return action.WithBody([]byte(text)) }

// WithJSON replaces the body by JSON, and sets its content type. Quote writes a text as a JSON string.
func (action *Action) WithJSON(json string) *Action {
	return action.SetHeader("content-type", "application/json").WithText(json)
}

func (action *Action) send() {
	if action == nil || action.action == "continue" {
		return
	}
	isModify := action.action == "modify"
	writer := headWriter{}
	writer.member("action", action.action)
	writer.integer("status", action.status)
	writer.member("url", action.url)
	writer.member("method", action.method)
	writer.integer("timeout_ms", action.timeoutMs)
	writer.member("state", action.state)
	if isModify {
		writer.pairs("headers_set", action.set)
		writer.pairs("headers_add", action.add)
		if action.remove != nil {
			writer.texts("headers_remove", action.remove)
		}
		if action.hasBody {
			writer.raw("replaces_body", "true")
		}
	} else {
		writer.pairs("headers", action.set)
	}
	outputFrame(writer.end(), action.body)
}

// StreamAction is the decision of a handler for an event of a stream.
type StreamAction struct {
	// replaces: the events below are sent in place of the received one.
	replaces bool
	events   []outgoingEvent
	body     []byte
	keeps    bool
	state    string
	fetch    *Action
}

type outgoingEvent struct {
	name      string
	dataBytes int
}

// PassEvent passes the event on unchanged.
func PassEvent() *StreamAction { return &StreamAction{} }

// FetchForEvent fetches first, see Fetch: the handler is called again with the same event. Keep of the action sets Event.State.
func FetchForEvent(fetch *Action) *StreamAction { return &StreamAction{fetch: fetch} }

// DropEvent drops the event; Emit sends others in its place.
func DropEvent() *StreamAction { return &StreamAction{replaces: true} }

// Emit sends an event in place of the received one; repeat it for more. An empty name is none.
func (action *StreamAction) Emit(name, data string) *StreamAction {
	action.replaces = true
	action.events = append(action.events, outgoingEvent{name, len(data)})
	action.body = append(action.body, data...)
	return action
}

// Keep sets the text that the next call of this stream finds in Event.State, at most 64 KiB.
func (action *StreamAction) Keep(state string) *StreamAction {
	action.keeps, action.state = true, state
	return action
}

func (action *StreamAction) send() {
	if action != nil && action.fetch != nil {
		action.fetch.send()
		return
	}
	if action == nil || !action.replaces && !action.keeps {
		return
	}
	writer := headWriter{}
	if action.replaces {
		list := []byte{'['}
		for index, event := range action.events {
			if index > 0 {
				list = append(list, ',')
			}
			one := headWriter{}
			one.member("name", event.name)
			one.raw("data_bytes", strconv.Itoa(event.dataBytes))
			list = append(list, one.end()...)
		}
		writer.raw("events", string(append(list, ']')))
	}
	if action.keeps {
		writer.raw("state", Quote(action.state))
	}
	outputFrame(writer.end(), action.body)
}

// TextAction is the decision of a handler for a piece of a text.
type TextAction struct {
	passed string
	held   string
	fetch  *Action
}

// PassText passes a text on in place of the piece's text. A nil action passes the piece's text on unchanged.
func PassText(text string) *TextAction { return &TextAction{passed: text} }

// FetchForText fetches before the text is passed on, see Fetch: the handler is called again with the same text.
func FetchForText(fetch *Action) *TextAction { return &TextAction{fetch: fetch} }

// Hold keeps text of at most 64 KiB: the next piece of this text begins with it.
func (action *TextAction) Hold(text string) *TextAction {
	action.held = text
	return action
}

func (action *TextAction) send() {
	if action == nil {
		return
	}
	if action.fetch != nil {
		action.fetch.send()
		return
	}
	writer := headWriter{}
	writer.integer("held_bytes", len(action.held))
	outputFrame(writer.end(), []byte(action.passed+action.held))
}

// PassCall runs the tool.
func PassCall() *Action { return Pass() }

// RejectCall does not run the tool: the model receives the text as its result.
func RejectCall(text string) *Action { return (&Action{action: "reject"}).WithText(text) }

// ReplaceArguments runs the tool with other arguments, a JSON object.
func ReplaceArguments(json string) *Action { return Modify().WithText(json) }
